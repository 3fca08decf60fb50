"""deepxc.data."""
