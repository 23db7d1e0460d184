# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Functions that change shapes and join arrays."""

