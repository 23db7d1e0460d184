"""Primitives that act on each element, and the formulas that they are lowered to."""
