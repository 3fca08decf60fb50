"""Compiled loops of this package. Import them inside functions: numba takes a while to load."""
