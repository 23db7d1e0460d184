"""`jax._src.literals`: kinds of arrays that jax makes of Python numbers; purax makes none of them."""

from __future__ import annotations


class LiteralArray:
    """No value is an instance."""


class TypedNdArray:
    """No value is an instance."""


class TypedInt(int):
    """No value is an instance."""


class TypedFloat(float):
    """No value is an instance."""


class TypedComplex(complex):
    """No value is an instance."""
