"""Primitives that move elements: broadcasting, reshaping, slicing, gather and scatter."""
