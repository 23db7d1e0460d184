"""The methods and properties of arrays, concrete and traced: `install` puts them on `purax.core.array.Array`.

Most are the functions of `purax.numpy` of the same name, with the array as first argument.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from purax.api.transfer import device_put
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.limits import MAX_ITEMS
from purax.core.source import located
from purax.core.trace import current
from purax.errors import shown
from purax.execution.eager import eager
from purax.numpy._creation import creation
from purax.numpy._elementwise import complex_numbers, rounding
from purax.numpy._operators import install_matmul
from purax.numpy._shape import shaping
from purax.primitives.elementwise.conversion import bitcast_convert_type, complex_
from purax.primitives.shape.reshaping import rev, split_p, squeeze_p, stack
from purax.typing import DTypeLike
from purax.xla.array import DeviceArray

SAME_NAME = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "conj", "conjugate", "cumprod", "cumsum",
    "diagonal", "dot", "max", "mean", "min", "nonzero", "prod", "ptp", "ravel", "repeat", "searchsorted", "sort",
    "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
)  # fmt: skip
"""Methods that are functions of the namespace."""


def _astype(self, dtype: DTypeLike | None, copy: bool = False, device: Any = None) -> Array:
    return creation.astype(self, dtype, copy=copy, device=device)


def _reshape(self, *args: Any, order: str = "C", out_sharding: Any = None) -> Array:
    if len(args) == 1:
        return shaping.reshape(self, args[0], order, out_sharding=out_sharding)
    return shaping.reshape(self, args, order, out_sharding=out_sharding)


def _transpose(self, *args: Any) -> Array:
    if not args or (len(args) == 1 and args[0] is None):
        return shaping.transpose(self)
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        return shaping.transpose(self, args[0])
    return shaping.transpose(self, args)


def _flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
    return shaping.ravel(self, order, out_sharding=out_sharding)


def _view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
    """The bits of the elements as another dtype; the last axis grows or shrinks where the sizes differ."""
    if type is not None:
        raise located(NotImplementedError, "view: only dtype is supported, not type")
    if dtype is None:
        return self
    new = dtypes.as_dtype(dtype)
    old = self.aval.dtype
    if old == np.bool_ or new == np.bool_:
        if dtypes.itemsize_bits(old) != 8 or dtypes.itemsize_bits(new) != 8:
            raise located(ValueError, f"view: cannot view {old} as {new}")
        if old == new:
            return self
        return self.astype(np.uint8).view(new) if old == np.bool_ else (self.view(np.uint8) != 0)
    if dtypes.is_complex(old) or dtypes.is_complex(new):
        return _view_complex(self, old, new)
    before, after = dtypes.itemsize_bits(old), dtypes.itemsize_bits(new)
    if before == after:
        return bitcast_convert_type(self, new)
    if not self.aval.ndim:
        raise located(
            ValueError,
            f"view: a scalar of {before} bits cannot be viewed as {new} of {after} bits; it has no last axis",
        )
    shape = self.aval.shape
    if before > after:
        return shaping.reshape(bitcast_convert_type(self, new), (*shape[:-1], shape[-1] * (before // after)))
    ratio = after // before
    if shape[-1] % ratio:
        raise located(
            ValueError,
            f"view: the last axis of shape {shape} must be divisible by {ratio} to be viewed as {new}",
        )
    return bitcast_convert_type(shaping.reshape(self, (*shape[:-1], shape[-1] // ratio, ratio)), new)


def _view_complex(x: Array, old: Any, new: Any) -> Array:
    if old == new:
        return x
    if dtypes.is_complex(old):  # as pairs of real numbers first
        parts = stack((complex_numbers.real(x), complex_numbers.imag(x)), x.aval.ndim)
        shape = x.aval.shape
        if not shape:
            raise located(ValueError, f"view: a scalar {old} cannot be viewed as {new}")
        return shaping.reshape(parts, (*shape[:-1], shape[-1] * 2)).view(new)
    part = dtypes.to_real_dtype(new)
    pairs = x.view(part)
    shape = pairs.aval.shape
    if not shape or shape[-1] % 2:
        raise located(ValueError, f"view: the last axis of shape {shape} must be even to be viewed as {new}")
    pairs = shaping.reshape(pairs, (*shape[:-1], shape[-1] // 2, 2))
    first, second = (
        squeeze_p.bind(p, dimensions=(len(shape),))
        for p in split_p.bind(pairs, sizes=(1, 1), axis=len(shape))
    )
    return complex_(first, second)


def _byteswap(self) -> Array:
    """The bytes of each element in reverse order."""
    dtype = self.aval.dtype
    size = dtype.itemsize
    if size == 1:
        return self
    if dtypes.is_complex(dtype):
        return complex_(complex_numbers.real(self).byteswap(), complex_numbers.imag(self).byteswap())
    octets = bitcast_convert_type(self, np.uint8)
    return bitcast_convert_type(rev(octets, (self.aval.ndim,)), dtype)


def _compress(self, condition, axis=None, *, out=None, size=None, fill_value=0) -> Array:
    return _namespace.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)  # type: ignore


def _to_device(self, device: Any, *, stream: Any = None) -> Array:
    """The array on another device, committed to it."""
    if stream is not None:
        raise located(ValueError, "to_device: stream is not supported")
    return device_put(self, device)


def _iterate(self) -> Iterator[Array]:
    shape = self.aval.shape
    if not shape:
        raise TypeError("iteration over a 0-d array")
    if shape[0] <= MAX_ITEMS:
        return iter(unstacked(self))
    # Of a long array, whose parts nobody may ever ask for, some are made at a time.
    pieces = (self[start : start + MAX_ITEMS] for start in range(0, shape[0], MAX_ITEMS))
    return itertools.chain.from_iterable(map(unstacked, pieces))


def _reversed(self) -> Iterator[Array]:
    return iter(self[::-1] if self.aval.shape else self)


def unstacked(x: Array) -> list[Array]:
    """The parts of an array along its first axis."""
    shape = x.aval.shape
    if x.__class__ is DeviceArray and current.trace is eager and x._placement is None:
        host = x.peek()
        if host is not None:
            aval = ShapedArray(shape[1:], x.aval.dtype, x.aval.weak_type)
            return [DeviceArray(aval, np.asarray(part)) for part in host]
    if not shape[0]:
        return []
    parts = split_p.bind(x, sizes=(1,) * shape[0], axis=0)
    return [squeeze_p.bind(part, dimensions=(0,)) for part in parts]


def _array_namespace(self, *, api_version: str | None = None) -> ModuleType:
    """The module with the functions of the array API standard, `purax.numpy`."""
    if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(
            f"array API version {shown(api_version)} is not supported; supported is up to '2024.12'"
        )
    return _namespace  # type: ignore[return-value]


def _flat(self):
    raise located(
        NotImplementedError, "x.flat is not supported: arrays are immutable. Iterate over x.ravel()."
    )


_namespace: ModuleType | None = None

_METHODS: dict[str, Callable] = {
    "astype": _astype,
    "reshape": _reshape,
    "transpose": _transpose,
    "flatten": _flatten,
    "view": _view,
    "byteswap": _byteswap,
    "to_device": _to_device,
    "__iter__": _iterate,
    "__reversed__": _reversed,
    "__array_namespace__": _array_namespace,
}
_PROPERTIES: dict[str, Callable] = {
    "T": shaping.transpose,
    "mT": shaping.matrix_transpose,
    "real": complex_numbers.real,
    "imag": complex_numbers.imag,
    "flat": _flat,
}


def install(namespace: ModuleType) -> None:
    """Gives arrays their methods and properties; those made elsewhere are taken from `namespace`, `purax.numpy`."""
    global _namespace
    _namespace = namespace
    for name, function in _METHODS.items():
        setattr(Array, name, function)
    for name, function in _PROPERTIES.items():
        setattr(Array, name, property(function))
    for name in SAME_NAME:
        same = getattr(namespace, name, None)
        if same is not None:
            setattr(Array, name, same)
    Array.clip = lambda self, min=None, max=None: rounding.clip(self, min, max)  # type: ignore[method-assign]
    Array.round = lambda self, decimals=0, out=None: rounding.round(self, decimals, out)  # type: ignore[method-assign]
    Array.copy = lambda self: creation.copied(self)  # type: ignore[method-assign]
    if hasattr(namespace, "compress"):
        Array.compress = _compress  # type: ignore[method-assign]
    if hasattr(namespace, "matmul"):
        install_matmul(namespace.matmul)
