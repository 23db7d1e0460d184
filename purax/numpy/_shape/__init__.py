"""Functions that change shapes and join arrays."""
