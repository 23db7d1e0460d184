"""Primitives that combine elements along axes."""
