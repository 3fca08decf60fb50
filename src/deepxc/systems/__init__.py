"""deepxc.systems."""
