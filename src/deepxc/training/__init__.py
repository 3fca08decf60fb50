"""Training: one loop for every system, pooled losses, optimisers that move only the rows that were read."""
