"""Module II: the few labels that a text could have, to train on and to predict from."""
