"""Sorting, searching, sets and order statistics."""
