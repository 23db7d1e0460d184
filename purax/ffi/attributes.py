"""What kernels are told besides arrays: Python values as attributes of StableHLO, in the form of text.

The text is exact to the bit and is the parameter of the operation, so that equal attributes are equal programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.xla.stablehlo import dense, element_type, scalar_text, tensor_type

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")


def dictionary_text(attributes: Sequence[tuple[str, str]]) -> str:
    """The text inside the braces of a dictionary of attributes."""
    return ", ".join(f"{_key(name)} = {text}" for name, text in attributes)


def freeze(attributes: Mapping[str, Any], what: str) -> tuple[tuple[str, str], ...]:
    """Attributes in the order of their names, each with its text."""
    try:
        return tuple(
            (name, attribute_text(attributes[name], f"{what}: the attribute {name!r}"))
            for name in sorted(attributes)
        )
    except RecursionError:
        raise located(ValueError, f"{what}: an attribute is nested too deeply") from None


def attribute_text(value: Any, what: str) -> str:
    """A Python value as an attribute.

    Args:
        value: a bool, number, string, bytes, dtype, array of NumPy, or a tuple or a dict of these. A number of Python
            has 64 bits; one of NumPy has its own dtype.
        what: how messages call it.

    >>> attribute_text(3, "x"), attribute_text(np.int8(3), "x"), attribute_text({"a": True}, "x")
    ('3 : i64', '3 : i8', '{a = true}')
    """
    if isinstance(value, Array):
        raise located(
            TypeError,
            f"{what} is an array of purax ({shown(value)}), but attributes "
            f"are fixed when the program is compiled. "
            "Pass it to the kernel as a positional argument, or as numpy.asarray(x) if its value is known",
        )
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise located(
                OverflowError,
                f"{what} is {int(value)}, which int64 cannot hold; numpy.uint64 goes up to 2**64 - 1",
            )
        return f"{int(value)} : i64"
    if isinstance(value, np.generic) and value.dtype.kind not in "cUSOMm" or isinstance(value, float):
        scalar = np.asarray(value)
        return f"{scalar_text(scalar[()], scalar.dtype)} : {element_type(scalar.dtype)}"
    if isinstance(value, str | bytes):
        return _quoted(value.encode() if isinstance(value, str) else value)
    if isinstance(value, np.dtype):
        return element_type(value)
    if isinstance(value, np.ndarray) and value.dtype.kind not in "USOMm" and value.dtype.names is None:
        native = np.ascontiguousarray(value, value.dtype.newbyteorder("=")).reshape(value.shape)
        return (
            f"dense<{dense(native, native.dtype)}> : {tensor_type(ShapedArray(native.shape, native.dtype))}"
        )
    if isinstance(value, tuple | list):
        return f"[{', '.join(attribute_text(one, f'{what}[{i}]') for i, one in enumerate(value))}]"
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise located(TypeError, f"{what} is a dict whose keys must be strings, but has {wrong[0]!r}")
        inner = ((key, attribute_text(value[key], f"{what}[{key!r}]")) for key in sorted(value))
        return f"{{{dictionary_text(list(inner))}}}"
    raise located(
        TypeError,
        f"{what} is {shown(value)} of type {type(value).__name__}, "
        f"which kernels cannot be told. Attributes are "
        "bools, real numbers, strings, dtypes, arrays of NumPy, and tuples and dicts of these",
    )


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name.encode())


def _quoted(data: bytes) -> str:
    """A string as MLIR writes it: what is not printable ASCII, by its hexadecimal code."""
    return '"' + "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data) + '"'


def quoted(text: str) -> str:
    """The inside of `_quoted`, for a legacy `backend_config`."""
    return _quoted(text.encode())[1:-1]
