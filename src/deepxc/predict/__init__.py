"""deepxc.predict."""
