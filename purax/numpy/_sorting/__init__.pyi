# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Sorting, searching, sets and order statistics."""

