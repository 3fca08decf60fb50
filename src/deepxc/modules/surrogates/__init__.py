"""Module I: easier tasks on the same texts, from which an encoder learns its features."""
