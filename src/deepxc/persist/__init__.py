"""deepxc.persist."""
