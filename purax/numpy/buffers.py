"""Arrays from buffers, strings and the arrays of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.numpy.creation import array, copied
from purax.numpy.filled_arrays import placed
from purax.typing import DTypeLike
from purax.xla.array import DeviceArray


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """The bytes of a buffer read as numbers.

    Args:
        buffer: an object with the buffer protocol, such as bytes.
        dtype: of the numbers.
        count: how many; −1 for all.
        offset: where to start, in bytes.

    Returns:
        An array with one axis.

    >>> import purax.numpy as jnp
    >>> jnp.frombuffer(b"abcd", dtype="uint8", offset=1)
    Array([ 98,  99, 100], dtype=uint8)
    """
    exact = dtypes.as_exact_dtype(dtype)
    return array(np.frombuffer(buffer, exact, count, offset), dtype=dtypes.as_available_dtype(exact))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """Numbers written in a string.

    Args:
        string: the text.
        dtype: of the numbers.
        count: how many; −1 for all.
        sep: what stands between them.

    Returns:
        An array with one axis.

    >>> import purax.numpy as jnp
    >>> jnp.fromstring("1, 2, 3", sep=",")
    Array([1., 2., 3.], dtype=float32)
    """
    wanted = dtypes.as_dtype(dtype)
    return array(np.fromstring(string, wanted, count, sep=sep), dtype=wanted)


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not provided: reading a file is not pure. Use `jnp.asarray(numpy.fromfile(...))`.

    Args:
        args: those of NumPy's function.
        kwargs: those of NumPy's function.

    >>> import purax.numpy as jnp
    >>> jnp.fromfile("data.bin")
    Traceback (most recent call last):
    NotImplementedError: jnp.fromfile is not provided because it is not pure. Use jnp.asarray(numpy.fromfile(...)).
    """
    raise NotImplementedError(
        "jnp.fromfile is not provided because it is not pure. Use jnp.asarray(numpy.fromfile(...))."
    )


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not provided: consuming an iterator is not pure. Use `jnp.asarray(numpy.fromiter(...))`.

    Args:
        args: those of NumPy's function.
        kwargs: those of NumPy's function.

    >>> import purax.numpy as jnp
    >>> jnp.fromiter(range(3), int)
    Traceback (most recent call last):
    NotImplementedError: jnp.fromiter is not provided because it is not pure. Use jnp.asarray(numpy.fromiter(...)).
    """
    raise NotImplementedError(
        "jnp.fromiter is not provided because it is not pure. Use jnp.asarray(numpy.fromiter(...))."
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """The array of another library, taken over through DLPack.

    Args:
        x: an object with `__dlpack__` and `__dlpack_device__`.
        device: where to put it.
        copy: True for memory of its own, None where needed, False to forbid it.

    Returns:
        An array.

    >>> import purax.numpy as jnp, numpy as np
    >>> jnp.from_dlpack(np.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, Array):
        return placed(copied(x) if copy else x, device)
    if not hasattr(x, "__dlpack__"):
        raise source.with_location(TypeError(f"from_dlpack needs an object with __dlpack__, got {type(x)}"))
    value = np.from_dlpack(x)
    exact = dtypes.as_exact_dtype(value.dtype)
    if (available := dtypes.as_available_dtype(exact)) is not exact:
        value = value.astype(available)
    result = DeviceArray(ShapedArray(value.shape, available), np.array(value) if copy else value)
    return placed(result, device)
