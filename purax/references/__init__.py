"""Mutable references (Ref): the cell, and what traced functions and loops do with it."""
