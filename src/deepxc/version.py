"""The library's version, the single place where it is written."""

__version__ = "0.1.0"
