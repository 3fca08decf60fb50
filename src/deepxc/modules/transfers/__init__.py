"""Module III: from the encoder that the surrogate task taught to the features of the real one."""
