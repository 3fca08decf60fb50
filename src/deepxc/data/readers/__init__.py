"""Readers: one module a family of layouts, chosen by `deepxc.data.reading`."""
