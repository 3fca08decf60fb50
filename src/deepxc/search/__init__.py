"""deepxc.search."""
