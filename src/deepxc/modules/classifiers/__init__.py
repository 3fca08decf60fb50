"""Module IV: which of the shortlisted labels is it?"""
