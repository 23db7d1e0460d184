"""Arrays as text and in files: NumPy's functions, which read arrays through their host values."""

from __future__ import annotations

import os
from typing import IO, Any

import ml_dtypes
import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._creation.creation import asarray

get_printoptions = np.get_printoptions
iterable = np.iterable
printoptions = np.printoptions
save = np.save
savez = np.savez
set_printoptions = np.set_printoptions


def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The numbers of an array as text; the arguments are those of `array_repr`.

    >>> import purax.numpy as jnp
    >>> jnp.array_str(jnp.array([1.0, 0.123456]), precision=2)
    '[1.   0.12]'
    """
    value = a if isinstance(a, np.ndarray) else np.asarray(asarray(a))
    return np.array_str(value, max_line_width, precision, suppress_small)


def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """An array as text that names its dtype.

    Args:
        arr: an array.
        max_line_width: where lines are broken.
        precision: how many digits of floating point numbers are shown.
        suppress_small: whether numbers close to zero are shown as zero.

    Returns:
        A string.

    >>> import purax.numpy as jnp
    >>> jnp.array_repr(jnp.array([1.0, 0.123456]), precision=2)
    'Array([1.  , 0.12], dtype=float32)'
    """
    if not isinstance(arr, (Array, np.ndarray)):
        arr = asarray(arr)
    if not isinstance(arr, Array):
        return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)
    options: dict[str, Any] = {
        "linewidth": max_line_width,
        "precision": precision,
        "suppress": suppress_small,
    }
    with np.printoptions(**{name: value for name, value in options.items() if value is not None}):
        return repr(arr)


def load(file: IO[bytes] | str | os.PathLike[Any], *args: Any, **kwargs: Any) -> Any:
    """An array saved by `jnp.save` or `numpy.save`, or the archive of several.

    Args:
        file: a name or an open file.
        args, kwargs: those of `numpy.load`.

    Returns:
        An array, with the dtype that was saved; for an archive, NumPy's object of named arrays.

    >>> import io, purax.numpy as jnp
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.ones(2, "bfloat16"))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([1, 1], dtype=bfloat16)
    """
    value = np.load(file, *args, **kwargs)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype == np.dtype("V2"):  # how NumPy's format names bfloat16
        value = value.view(ml_dtypes.bfloat16)
    if dtypes.kind(value.dtype) == "extended":  # strings, objects, records
        return value
    return asarray(value, dtype=value.dtype)
