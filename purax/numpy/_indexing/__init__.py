"""Reading and writing parts of arrays."""
