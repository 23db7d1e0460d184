"""Every operation as a primitive, one family per file, with all its rules together.

The functions here are strict: operands have one dtype, shapes are equal (or scalars), nothing is promoted. What users
call is in `purax.lax` and `purax.numpy`.
"""
