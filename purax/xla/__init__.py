"""The engine room: the only package that imports jaxlib."""
