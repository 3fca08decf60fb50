"""How good are the answers: metrics, frequency bins, a report per label, and the comparison of two runs.

Everything is sparse: the cost follows the number of answers and of true labels, never texts x labels.
"""
