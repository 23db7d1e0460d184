"""Factorizations and solvers."""
