"""The table of cases: for every primitive, operands and parameters on which its rules are tried.

Each module of this package has a list `CASES`, for the primitives of the file of `purax.primitives` of the same name.
"""
