"""`jax.ops.index_update` and its kin, which programs wrote before arrays had `at`: `x.at[index].set(values)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import purax.numpy


class _Index:
    """`jax.ops.index`: gives back what it is indexed with."""

    def __getitem__(self, index: Any) -> Any:
        return index


index = _Index()


def _updating(name: str, method: str) -> Callable[..., Any]:
    def update(
        x: Any, idx: Any, y: Any, indices_are_sorted: bool = False, unique_indices: bool = False
    ) -> Any:
        at = purax.numpy.asarray(x).at[idx]
        return getattr(at, method)(y, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)

    update.__name__ = update.__qualname__ = name
    update.__doc__ = (
        f"The array `x` after `x[idx]` was changed by `y`; now written `x.at[idx].{method}(y)`.\n\n"
        ">>> from purax.compat import index_update\n"
        f">>> index_update.{name}([1, 2], index_update.index[0], 1)  # doctest: +SKIP\n"
    )
    return update


index_update = _updating("index_update", "set")
index_add = _updating("index_add", "add")
index_mul = _updating("index_mul", "multiply")
index_min = _updating("index_min", "min")
index_max = _updating("index_max", "max")
