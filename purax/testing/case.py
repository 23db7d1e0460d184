"""One row of the table of cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.core.primitive import Primitive


class Case(NamedTuple):
    """Operands and parameters for a primitive.

    Attributes:
        primitive: what is tried.
        operands: NumPy arrays, exact dtypes.
        params: keyword parameters.
        linear: positions for the transpose law: the primitive is linear in these operands together. Empty: it has
            no `transpose`.
        differentiable: whether the `jvp` law applies (smooth at these operands).
        tolerance: relative tolerance between `lower` and `host`; None for the dtype's default.
    """

    primitive: Primitive
    operands: tuple[np.ndarray, ...]
    params: dict[str, Any]
    linear: tuple[int, ...] = ()
    differentiable: bool = True
    tolerance: float | None = None

    def __str__(self) -> str:
        types = ",".join(f"{x.dtype}{list(x.shape)}" for x in self.operands)
        params = ",".join(f"{name}={value}" for name, value in self.params.items())
        return f"{self.primitive.name}({types})[{params}]"


def case(
    primitive: Primitive,
    *operands: np.ndarray | np.generic,
    linear: Sequence[int] = (),
    differentiable: bool = True,
    tolerance: float | None = None,
    **params: Any,
) -> Case:
    """A row of the table; see `Case`."""
    return Case(primitive, tuple(map(np.asarray, operands)), params, tuple(linear), differentiable, tolerance)


def numbers(shape: Sequence[int], dtype: Any = np.float32, low: float = -2, high: float = 2, seed: int = 0):
    """Random numbers between `low` and `high`, distinct with probability one for floating point dtypes."""
    generator = np.random.default_rng([seed, *shape])
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return generator.random(shape) < 0.5
    if dtype.kind == "c":
        return (generator.uniform(low, high, shape) + 1j * generator.uniform(low, high, shape)).astype(dtype)
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        return generator.integers(int(low), int(high), tuple(shape), endpoint=True).astype(dtype)
    return generator.uniform(low, high, shape).astype(dtype)
