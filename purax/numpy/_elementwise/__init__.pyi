# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Functions of each element."""

