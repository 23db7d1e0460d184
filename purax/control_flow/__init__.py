"""Primitives that carry programs or Python functions: branches, loops, custom derivative rules, rematerialization."""
