"""The dtypes under their names: `jnp.float32`, `jnp.bfloat16`, …

Each is a class that stands for a dtype wherever one is asked for, equal to NumPy's class of the same name, and calling
it makes an array: `jnp.float32(1)`. `float_`, `int_`, `uint` and `complex_` are the default dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._creation.creation import asarray


class ScalarType(type):
    """The class of `jnp.float32` and the other names of dtypes."""

    _find_dtype: Callable[[], Any]

    def __new__(cls, name: str, find_dtype: Callable[[], Any]):
        docstring = f"The dtype {name}. Calling it makes an array: `jnp.{name}(x)` is `jnp.asarray(x, dtype='{name}')`."
        return super().__new__(cls, name, (), {"__doc__": docstring, "__module__": "purax.numpy"})

    def __init__(cls, name: str, find_dtype: Callable[[], Any]):
        cls._find_dtype = staticmethod(find_dtype)

    @property
    def dtype(cls) -> Any:
        """The NumPy dtype."""
        return cls._find_dtype()

    def __call__(cls, x: Any) -> Array:
        if isinstance(x, str):
            x = complex(x) if dtypes.is_complex(cls.dtype) else float(x)
        return asarray(x, dtype=cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        if cls is other:
            return True
        if isinstance(other, ScalarType):
            return cls.dtype == other.dtype
        return cls.dtype.type is other or (isinstance(other, (np.dtype, str)) and cls.dtype == other)

    def __ne__(cls, other: object) -> bool:
        return not cls == other

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'purax.numpy.{cls.__name__}'>"


def _named(name: str) -> ScalarType:
    dtype = dtypes.as_exact_dtype(name)
    return ScalarType(name, lambda: dtype)


bool_ = _named("bool")
int4, int8, int16, int32, int64 = map(_named, ("int4", "int8", "int16", "int32", "int64"))
uint4, uint8, uint16, uint32, uint64 = map(_named, ("uint4", "uint8", "uint16", "uint32", "uint64"))
int2, uint2 = map(_named, ("int2", "uint2"))
if hasattr(ml_dtypes, "int1"):
    int1, uint1 = map(_named, ("int1", "uint1"))
float8_e3m4, float8_e4m3, float8_e8m0fnu, float8_e4m3b11fnuz = map(
    _named, ("float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float8_e4m3b11fnuz")
)
float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz = map(
    _named, ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
)
float4_e2m1fn, float6_e2m3fn, float6_e3m2fn = map(_named, ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"))
bfloat16, float16, float32, float64 = map(_named, ("bfloat16", "float16", "float32", "float64"))
complex64, complex128 = map(_named, ("complex64", "complex128"))

single, double, csingle, cdouble = float32, float64, complex64, complex128
float_ = ScalarType("float_", dtypes.default_float)
int_ = ScalarType("int_", dtypes.default_int)
uint = ScalarType("uint", dtypes.default_uint)
complex_ = ScalarType("complex_", dtypes.default_complex)

generic, number, integer, signedinteger = np.generic, np.number, np.integer, np.signedinteger
unsignedinteger, inexact, floating = np.unsignedinteger, np.inexact, np.floating
complexfloating, flexible, character, object_ = np.complexfloating, np.flexible, np.character, np.object_
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning
