"""The type promotion lattice: the least dtype that two or more dtypes turn into.

A node is a NumPy dtype, or one of the Python types `int`, `float`, `complex`, which mean weak dtypes: those
of Python scalars, which give way to any array dtype of their kind. The edges are JAX's documented lattice;
a least upper bound is found from the sets of nodes above each node. Needs NumPy, ml_dtypes and `source`.

           ┌ u8 ── u16 ── u32 ── u64 ┐          ┌ bf16 ┐
    b ─ i* ┤   ╲      ╲      ╲       ├ f* ──────┤      ├ f32 ── f64 ┐
           ├ i8 ── i16 ── i32 ── i64 ┘  │       ├ f16  ┘   ╲        ├ c128
           └ int1, int2, int4, …        │       └ float8, … ╲       │
                                        └ c* ─────────────── c64 ───┘
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from purax.core.source import located
from purax.errors import TypePromotionError

__all__ = ["TypePromotionError", "least_upper_bound"]

Node = Any  # np.dtype | type[int] | type[float] | type[complex]


def _present(*names: str) -> tuple[np.dtype, ...]:
    """The dtypes of these names that the installed ml_dtypes has."""
    return tuple(np.dtype(getattr(ml_dtypes, name)) for name in names if hasattr(ml_dtypes, name))


BOOL = np.dtype(np.bool_)
SIGNED = tuple(map(np.dtype, (np.int8, np.int16, np.int32, np.int64)))
UNSIGNED = tuple(map(np.dtype, (np.uint8, np.uint16, np.uint32, np.uint64)))
SMALL_SIGNED = _present("int1", "int2", "int4")
SMALL_UNSIGNED = _present("uint1", "uint2", "uint4")
SMALL_FLOATS = _present(
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
)  # fmt: skip
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (BFLOAT16, *map(np.dtype, (np.float16, np.float32, np.float64)))
COMPLEXES = tuple(map(np.dtype, (np.complex64, np.complex128)))


def _standard_edges(enable_x64: bool) -> dict[Node, tuple[Node, ...]]:
    int8, int16, int32, int64 = SIGNED
    uint8, uint16, uint32, uint64 = UNSIGNED
    bfloat16, float16, float32, float64 = FLOATS
    complex64, complex128 = COMPLEXES
    return {
        BOOL: (int,),
        int: (uint8, int8, *SMALL_SIGNED, *SMALL_UNSIGNED),
        uint8: (uint16, int16),
        uint16: (uint32, int32),
        uint32: (uint64, int64 if enable_x64 else int32),  # without 64 bits, u32 + i32 stays at 32
        uint64: (float,),
        int8: (int16,),
        int16: (int32,),
        int32: (int64,),
        int64: (float,),
        float: (bfloat16, float16, complex, *SMALL_FLOATS),
        bfloat16: (float32,),
        float16: (float32,),
        float32: (float64, complex64),
        float64: (complex128,),
        complex: (complex64,),
        complex64: (complex128,),
    }


def _strict_edges() -> dict[Node, tuple[Node, ...]]:
    """Only weak dtypes give way: to each other, and to the array dtypes of their kind and above."""
    return {
        int: (float, *SIGNED, *UNSIGNED, *SMALL_SIGNED, *SMALL_UNSIGNED),
        float: (complex, *FLOATS, *SMALL_FLOATS),
        complex: COMPLEXES,
    }


class Lattice:
    """A partial order given by its edges, from lower to upper nodes."""

    def __init__(self, edges: dict[Node, tuple[Node, ...]]) -> None:
        self._edges = edges
        self._above: dict[Node, frozenset[Node]] = {}

    def above(self, node: Node) -> frozenset[Node]:
        """`node` and all nodes that it promotes to."""
        found = self._above.get(node)
        if found is None:
            uppers = (self.above(upper) for upper in self._edges.get(node, ()))
            found = self._above[node] = frozenset({node}).union(*uppers)
        return found

    def join(self, nodes: Iterable[Node]) -> Node | None:
        """The least node above all of `nodes`, or None."""
        common = frozenset.intersection(*map(self.above, nodes))
        for node in common:
            if common <= self.above(node):
                return node
        return None


_STANDARD = {enable_x64: Lattice(_standard_edges(enable_x64)) for enable_x64 in (False, True)}
_STRICT = Lattice(_strict_edges())


def least_upper_bound(nodes: Iterable[Node], enable_x64: bool, strict: bool) -> Node:
    """The dtype, or the weak kind, that all of `nodes` promote to.

    Args:
      nodes: NumPy dtypes, and `int`, `float`, `complex` for weak ones.
      enable_x64: Whether 64-bit dtypes are in use without being asked for.
      strict: Whether only weak dtypes give way.

    Returns:
      A node.

    Raises:
      TypePromotionError: There is none.

    >>> least_upper_bound([np.dtype("int16"), np.dtype("uint8"), int], enable_x64=False, strict=False)
    dtype('int16')
    >>> least_upper_bound([np.dtype("int16"), float], enable_x64=False, strict=False)
    <class 'float'>
    """
    nodes = tuple(dict.fromkeys(nodes))
    result = (_STRICT if strict else _STANDARD[enable_x64]).join(nodes)
    if result is None:
        raise located(TypePromotionError, _explanation(nodes, strict))
    return result


def _explanation(nodes: tuple[Node, ...], strict: bool) -> str:
    names = [f"Python {node.__name__}" if isinstance(node, type) else node.name for node in nodes]
    message = f"dtypes {', '.join(names[:-1])} and {names[-1]} do not promote to a common dtype"
    if strict:
        return (
            f"{message} when numpy_dtype_promotion is 'strict'. Cast one, as in x.astype(y.dtype), or "
            "allow them to mix by config.update('numpy_dtype_promotion', 'standard')."
        )
    if any(node in SMALL_FLOATS for node in nodes):
        rule, wider = "floats of 8 bits and less mix with integers and Python numbers only", "float32"
    else:
        rule, wider = "integers of 4 bits and less mix with Python integers only", "int32"
    return f"{message}: {rule}, to avoid unintended promotion. Cast the operands, as in x.astype('{wider}')."
