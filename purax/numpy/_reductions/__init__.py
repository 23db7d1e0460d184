"""Functions that combine elements along axes."""
