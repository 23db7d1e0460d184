"""Mutable references (`Ref`): the cell, and what traced functions and loops do with it.

A reference (`purax.ref`) is a cell that holds an array (`cells`). Programs know nothing of it: while a function is
traced, a cell holds a traced value, and what it holds at the end becomes one more result (`traced`), or one more
carry of a loop (`loop_carries`). So references cost nothing in programs, and every transformation of programs holds
for them. Types that libraries define (`jax.experimental.hijax`) are cells, too.
"""
