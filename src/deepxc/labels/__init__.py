"""What the label space looks like: propensities, centroids, the label graph, balanced clusters, head labels."""
