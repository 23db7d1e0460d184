# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Reading and writing parts of arrays."""

