"""`check_close`: compares trees of arrays within tolerances, which may be given for each dtype."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from purax.core import dtypes
from purax.core.limits import numpy_value
from purax.tree_util import keystr, tree_flatten_with_path, tree_structure

Tolerance: TypeAlias = "float | Mapping[Any, float] | None"

# Some units in the last place of a result of a few operations.
_CLOSE = {
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "float64": 1e-15,
    "complex64": 1e-6,
    "complex128": 1e-15,
}


def chosen(tolerance: Tolerance, kinds: Iterable[Any], defaults: Mapping[str, float], rest: float) -> float:
    """The largest tolerance for values of the dtypes `kinds`.

    Args:
        tolerance: a number for all dtypes, numbers by dtype, or None.
        kinds: the dtypes that are compared.
        defaults: by names of dtypes, for those that `tolerance` says nothing about.
        rest: for those that `defaults` says nothing about either.

    Returns:
        The tolerance.

    >>> chosen({np.float32: 0.1}, [np.dtype("float32"), np.dtype("float64")], {"float64": 1e-5}, 0.0)
    0.1
    """
    if tolerance is not None and not isinstance(tolerance, Mapping):
        return tolerance
    given = {dtypes.as_exact_dtype(kind): bound for kind, bound in (tolerance or {}).items()}
    return max(given.get(kind, defaults.get(np.dtype(kind).name, rest)) for kind in kinds)


def check_close(xs: Any, ys: Any, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = "") -> None:
    """Raises an `AssertionError` unless two trees of arrays have the same structure, dtypes and nearly the same values.

    Args:
        xs: a tree of arrays and numbers.
        ys: another.
        atol: absolute tolerance, a number or a dict of numbers by dtype; by the dtype if not given.
        rtol: relative tolerance, likewise.
        err_msg: stands in the message.

    >>> import purax.numpy as jnp
    >>> from purax.test_util import check_close
    >>> check_close({"a": jnp.ones(2)}, {"a": jnp.ones(2) + 1e-4}, atol={jnp.float32: 1e-3})
    """
    if tree_structure(xs) != tree_structure(ys):
        raise AssertionError(
            f"check_close: different structures, {tree_structure(xs)} and {tree_structure(ys)}. {err_msg}"
        )
    pairs = zip(tree_flatten_with_path(xs)[0], tree_flatten_with_path(ys)[0], strict=True)
    for (path, x), (_, y) in pairs:
        a, b = numpy_value(x), numpy_value(y)
        where = f"check_close: xs{keystr(path)} and ys{keystr(path)}"
        kinds = [dtypes.dtype_and_weak(value)[0] for value in (x, y)]
        if kinds[0] != kinds[1]:
            raise AssertionError(f"{where} have different dtypes, {kinds[0]} and {kinds[1]}. {err_msg}")
        if a.shape != b.shape:
            raise AssertionError(f"{where} have different shapes, {a.shape} and {b.shape}. {err_msg}")
        if kinds[0] == dtypes.float0:
            continue
        wide = np.complex128 if dtypes.is_complex(kinds[0]) else np.float64
        is_exact = not dtypes.is_inexact(kinds[0]) and atol is None and rtol is None
        np.testing.assert_allclose(
            a if is_exact else a.astype(wide),
            b if is_exact else b.astype(wide),
            atol=chosen(atol, kinds, _CLOSE, 0.0),
            rtol=chosen(rtol, kinds, _CLOSE, 0.0),
            err_msg=f"{where} differ. {err_msg}",
        )
