# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Functions that combine elements along axes."""

