"""Arrays from buffers, strings and the arrays of other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.numpy._creation.creation import array, copied
from purax.numpy._creation.filled_arrays import placed
from purax.numpy._promotion import PYTHON_NUMBERS
from purax.sharding.shardings import SingleDeviceSharding
from purax.typing import DTypeLike
from purax.xla import client, execute, jaxlib_api
from purax.xla.array import DeviceArray, PlacedArray


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
    # The classes of Python's numbers have 64 bits in a buffer, whatever the dtypes in use are.
    exact = (
        np.dtype(dtype)
        if isinstance(dtype, type) and dtype in PYTHON_NUMBERS
        else dtypes.as_exact_dtype(dtype)
    )
    return array(np.frombuffer(buffer, exact, count, offset))


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

    Raises:
        ValueError: x lies on a device that this process does not use, or its memory is laid out as no array's here.

    >>> import purax.numpy as jnp, numpy as np
    >>> jnp.from_dlpack(np.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(x, Array):
        return placed(copied(x) if copy else x, device)
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise located(
            TypeError, f"from_dlpack needs an object with __dlpack__ and __dlpack_device__, got {type(x)}"
        )
    where = _device_of(x)
    if where.platform != "cpu":
        return placed(_from_capsule(x, where, bool(copy)), device)
    value = _on_host(x)
    exact = dtypes.as_exact_dtype(value.dtype)
    if (available := dtypes.as_available_dtype(exact)) is not exact:
        value = value.astype(available)
    result = DeviceArray(ShapedArray(value.shape, available), np.array(value) if copy else value)
    return placed(result, device)


def _on_host(x: Any) -> np.ndarray:
    """A read-only view of an array in the host's memory."""
    if isinstance(x, np.ndarray):  # which exports neither its extended dtypes nor read-only memory
        view = x.view()
        view.flags.writeable = False
        return view
    try:
        return np.from_dlpack(x)
    except (BufferError, RuntimeError, ValueError):  # NumPy lacks dtypes that are known here
        pass
    try:
        return jaxlib_api.array_of_capsule(x.__dlpack__())
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise located(ValueError, f"from_dlpack: x, of {type(x)}, cannot be taken over: {error}") from error


# The platforms of DLPack's numbers for devices; memory of the host that a GPU may read is the host's.
_PLATFORMS = {1: "cpu", 2: "cuda", 3: "cpu", 10: "rocm", 11: "cpu", 13: "cuda"}


def _device_of(x: Any) -> Any:
    """The device of this process that holds the memory of another library's array."""
    answer = x.__dlpack_device__()
    try:
        kind, number = (int(part) for part in answer)
        platform = _PLATFORMS[kind]
    except (TypeError, ValueError, KeyError):
        raise located(
            ValueError,
            f"from_dlpack: x, of {type(x)}, lies on the device {answer!r} of DLPack; known are pairs of a kind "
            f"({', '.join(map(str, _PLATFORMS))}) and a number",
        ) from None
    try:
        devices = client.local_devices(backend=platform)
    except RuntimeError:
        devices = []
    if platform == "cpu" and devices:
        return devices[0]
    for device in devices:
        if device.local_hardware_id == number:
            return device
    raise located(
        ValueError,
        f"from_dlpack: x, of {type(x)}, lies on device {number} of platform {platform!r}, which this process does "
        f"not use (it has {devices or 'none of that platform'}). Copy it to the host first, for instance by "
        "`x.cpu()`",
    )


def _from_capsule(x: Any, device: Any, copy: bool) -> Array:
    """The array of another library as a buffer of XLA."""
    sharding = SingleDeviceSharding(device)
    try:
        buffer = jaxlib_api.from_dlpack_of(x, device, sharding, execute.BufferType, copy)
    except (BufferError, RuntimeError, ValueError) as error:
        raise located(ValueError, f"from_dlpack: x, of {type(x)}, cannot be taken over: {error}") from error
    exact = dtypes.as_exact_dtype(buffer.aval.dtype)
    aval = ShapedArray(tuple(buffer.aval.shape), exact)
    result = (
        DeviceArray(aval, None, buffer)
        if device is client.home_device()
        else PlacedArray(aval, buffer, sharding, committed=True)
    )
    available = dtypes.as_available_dtype(exact)
    return result if available is exact else result.astype(available)
