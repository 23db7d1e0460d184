"""Changing dtypes: by value, by bits, and between complex numbers and their parts.

Converting follows XLA: floats become integers by dropping the fraction, saturate at the ends of the range, and NaN
becomes 0. Complex numbers that become real lose their imaginary part. Anything but zero becomes True, 1j as well.
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import is_symbolic_shape
from purax.core.primitive import Primitive, is_linear
from purax.primitives.elementwise.elementwise import STREAMED, Elementwise, binary, neg
from purax.primitives.shape.broadcasting import move_axis, sum_to_shape
from purax.xla.aligned_memory import SMALL, aligned_empty


class ConvertElementType(Primitive):
    """The elements of x as `new_dtype`."""

    name = "convert_element_type"
    keeps_ends = True
    may_make = ("inf",)
    is_cheap_to_repeat = True

    def infer(self, x, *, new_dtype, weak_type):
        for dtype in (x.dtype, new_dtype):
            if dtypes.kind(dtype) in ("extended", "float0"):
                raise TypeError(
                    f"convert_element_type cannot convert {x.str_short()} to {dtypes.dtype_name(new_dtype)}: "
                    f"{dtypes.dtype_name(dtype)} is not a dtype of numbers"
                )
        return ShapedArray(x.shape, new_dtype, weak_type)

    def lay_out(self, out, x, *, new_dtype, weak_type):
        return x.spec

    def host(self, x, *, new_dtype, weak_type):
        return converted(x, new_dtype)

    def host_function(self, avals, params):
        old, new = avals[0].dtype, params["new_dtype"]
        if old not in STREAMED or new not in STREAMED:
            return super().host_function(avals, params)
        to_integers = dtypes.is_integer(new) and dtypes.is_inexact(old)
        return functools.partial(saturated if to_integers else cast, dtype=new)

    def streaming_cost(self, x, *, new_dtype, weak_type):
        return 1 if x.dtype in STREAMED and new_dtype in STREAMED else 0

    def lower(self, builder, x, *, new_dtype, weak_type):
        if new_dtype == np.bool_ and x.dtype != np.bool_:
            return builder.compare("NE", x, builder.constant(0, x.aval))
        if dtypes.is_complex(x.dtype) and not dtypes.is_complex(new_dtype):
            x = builder.op("real", (x,), x.aval.with_dtype(dtypes.to_real_dtype(x.dtype)))
        return builder.convert(x, new_dtype)

    def jvp(self, primals, tangents, *, new_dtype, weak_type):
        out = self.bind(*primals, new_dtype=new_dtype, weak_type=weak_type)
        (dx,) = tangents
        if type(dx) is Zero or not dtypes.is_inexact(new_dtype) or not dtypes.is_inexact(aval_of(dx).dtype):
            return out, Zero.like(out)
        return out, self.bind(dx, new_dtype=new_dtype, weak_type=weak_type)

    def transpose(self, cotangent, x, *, new_dtype, weak_type):
        return (self.bind(cotangent, new_dtype=x.dtype, weak_type=x.aval.weak_type),)

    def batch(self, operands, batch_axes, *, new_dtype, weak_type):
        return self.bind(*operands, new_dtype=new_dtype, weak_type=weak_type), batch_axes[0]


def converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`x` as an array of `dtype`, with XLA's treatment of what does not fit."""
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype) and dtype != np.bool_:
        x = x.real
    if dtypes.is_integer(dtype) and dtypes.is_inexact(x.dtype):
        return saturated(x, dtype)
    if dtypes.is_integer(dtype) and x.dtype.name in _SMALL:  # which convert to NumPy's own dtypes only
        x = x.astype(np.int8)
    return cast(x, dtype)


def cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`x.astype(dtype)`; a large result is in memory that XLA uses in place."""
    if x.size * dtype.itemsize <= SMALL:
        return x.astype(dtype)
    out = aligned_empty(x.shape, dtype)
    np.copyto(out, x, casting="unsafe")
    return out


_SMALL = ("int2", "int4", "uint2", "uint4")
_INDEFINITE = {np.dtype(np.int32): -(2**31), np.dtype(np.int64): -(2**63)}


def saturated(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floating point numbers as integers: fractions dropped, values clamped to the range, 0 for NaN."""
    if dtype in _INDEFINITE and x.dtype.itemsize >= 4:
        result = cast(x, dtype)
        # The least number is what the processor gives for what does not fit.
        if np.minimum.reduce(result, axis=None, initial=0) != _INDEFINITE[dtype]:
            return result
    limits = ml_dtypes.iinfo(dtype)
    wide = x.astype(np.float64)
    if dtypes.itemsize_bits(dtype) < 64:
        # Through int64: NumPy leaves conversions of floats to narrow and unsigned integers to the processor.
        inside = np.where(np.isnan(wide), 0, np.clip(wide, float(limits.min), float(limits.max)))
        return inside.astype(np.int64).astype(dtype)
    too_low, too_high = wide < float(limits.min), wide >= float(limits.max)  # float(max) is max + 1
    inside = np.where(too_low | too_high | np.isnan(wide), 0, wide)
    result = np.where(too_low, limits.min, inside.astype(dtype))
    return np.where(too_high, limits.max, result).astype(dtype)


class BitcastConvertType(Primitive):
    """The bits of x as `new_dtype`. A narrower dtype adds a last axis, a wider one takes it away."""

    name = "bitcast_convert_type"
    keeps_ends = True
    host_is_cheap = True

    def infer(self, x, *, new_dtype):
        kinds = {dtypes.kind(x.dtype), dtypes.kind(new_dtype)}
        if (len(kinds) > 1 and kinds & {"bool", "complex"}) or kinds & {"extended", "float0"}:
            raise TypeError(
                f"bitcast_convert_type cannot convert {x.str_short()} to {dtypes.dtype_name(new_dtype)}: bits of "
                "complex, bool and extended dtypes cannot be reinterpreted as another kind"
            )
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        if old == new:
            return ShapedArray(x.shape, new_dtype)
        if old > new:
            return ShapedArray((*x.shape, old // new), new_dtype)
        if not x.shape or x.shape[-1] * old != new:
            raise ValueError(
                f"bitcast_convert_type to {dtypes.dtype_name(new_dtype)} joins {new // old} elements of "
                f"{dtypes.dtype_name(x.dtype)} into one, so the last axis must have that size; got shape {x.shape}"
            )
        return ShapedArray(x.shape[:-1], new_dtype)

    def host(self, x, *, new_dtype):
        shape = self.infer(aval_of(x), new_dtype=new_dtype).shape
        x = np.ascontiguousarray(x)
        old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
        if old == new and x.dtype.itemsize == new_dtype.itemsize:
            return x.view(new_dtype).reshape(shape)
        if min(old, new) >= 8:
            return x.reshape(-1).view(new_dtype).reshape(shape)
        return _from_bits(_to_bits(x, old), new, new_dtype).reshape(shape)

    def lower(self, builder, x, *, new_dtype):
        aval = self.infer(x.aval, new_dtype=new_dtype)
        if aval.shape != x.shape and is_symbolic_shape(aval.shape):
            raise NotImplementedError(
                f"bitcast_convert_type to {dtypes.dtype_name(new_dtype)}, which has other bits than "
                f"{x.aval.str_short()}, cannot be exported for symbolic shapes, which XLA does not refine there"
            )
        return x if aval == x.aval else builder.op("bitcast_convert", (x,), aval)

    def jvp(self, primals, tangents, *, new_dtype):
        out = self.bind(*primals, new_dtype=new_dtype)
        return out, Zero.like(out)

    def batch(self, operands, batch_axes, *, new_dtype):
        x = move_axis(operands[0], batch_axes[0], 0)
        return self.bind(x, new_dtype=new_dtype), 0


def _to_bits(x: np.ndarray, bits: int) -> np.ndarray:
    """The bits of all elements in a row, lowest first; NumPy keeps an element of less than a byte in one byte."""
    as_bytes = np.frombuffer(x.tobytes(), np.uint8).reshape(-1, x.dtype.itemsize)
    return np.unpackbits(as_bytes, axis=1, bitorder="little")[:, :bits].reshape(-1)


def _from_bits(row: np.ndarray, bits: int, dtype: np.dtype) -> np.ndarray:
    """The inverse of `_to_bits`; small signed integers repeat their sign bit up to the byte."""
    elements = row.reshape(-1, bits)
    if bits < 8:
        fill = elements[:, -1:] if dtype.name.startswith("int") else np.zeros_like(elements[:, -1:])
        elements = np.concatenate([elements, np.repeat(fill, 8 - bits, 1)], 1)
    return np.packbits(elements, axis=1, bitorder="little").reshape(-1).view(dtype)


class Real(Elementwise):
    """The real part of x."""

    name = "real"
    is_linear = True
    preserves_zero = True
    is_cheap_to_repeat = True
    host_is_cheap = True
    accepts = ("complex",)

    def result_dtype(self, dtype):
        return dtypes.to_real_dtype(dtype)

    def host(self, x):
        return np.real(x)

    def tangent(self, position, dx, out, x):
        return real(dx)

    def transpose(self, cotangent, x):
        return (complex_(cotangent, 0),)


class Imag(Elementwise):
    """The imaginary part of x."""

    name = "imag"
    is_linear = True
    preserves_zero = True
    is_cheap_to_repeat = True
    host_is_cheap = True
    accepts = ("complex",)

    def result_dtype(self, dtype):
        return dtypes.to_real_dtype(dtype)

    def host(self, x):
        return np.imag(x)

    def tangent(self, position, dx, out, x):
        return imag(dx)

    def transpose(self, cotangent, x):
        # Cotangents pair with tangents by Re(cotangent · tangent), without conjugation.
        return (complex_(0, neg(cotangent)),)


class Complex(Elementwise):
    """x + i y"""

    name = "complex"
    is_linear = True
    is_cheap_to_repeat = True
    accepts = ("float",)

    def infer(self, x, y):
        aval = super().infer(x, y)
        if x.dtype not in (np.float32, np.float64):
            raise TypeError(
                f"complex takes float32 or float64 arrays, got {x.str_short()}; convert them first"
            )
        return aval

    def result_dtype(self, dtype):
        return dtypes.to_complex_dtype(dtype)

    def host(self, x, y):
        out = np.empty(np.broadcast_shapes(x.shape, y.shape), self.result_dtype(x.dtype))
        out.real, out.imag = x, y
        return out

    def tangent(self, position, dx, out, x, y):
        return complex_(dx, 0) if position == 0 else complex_(0, dx)

    def transpose(self, cotangent, x, y):
        return (
            sum_to_shape(real(cotangent), x.shape) if is_linear(x) else None,
            sum_to_shape(imag(neg(cotangent)), y.shape) if is_linear(y) else None,
        )


class Conj(Elementwise):
    """The conjugate of x; a real x becomes complex. `input_dtype` is the dtype of x."""

    name = "conj"
    is_linear = True
    preserves_zero = True
    is_cheap_to_repeat = True
    accepts = ("float", "complex")

    def infer(self, x, *, input_dtype):
        return super().infer(x)

    def result_dtype(self, dtype):
        return dtypes.to_complex_dtype(dtype)

    def host(self, x, *, input_dtype):
        return np.conjugate(x).astype(self.result_dtype(x.dtype))

    def emit(self, builder, x, *, input_dtype):
        out = x.aval.with_dtype(self.result_dtype(x.dtype))
        if not dtypes.is_complex(x.dtype):
            return builder.op("complex", (x, builder.constant(0, x.aval)), out)
        part = x.aval.with_dtype(dtypes.to_real_dtype(x.dtype))
        minus = builder.op("negate", (builder.op("imag", (x,), part),), part)
        return builder.op("complex", (builder.op("real", (x,), part), minus), out)

    def tangent(self, position, dx, out, x, *, input_dtype):
        return conj(dx)

    def transpose(self, cotangent, x, *, input_dtype):
        result = conj(cotangent)
        return (result if dtypes.is_complex(x.dtype) else real(result),)


class ReducePrecision(Elementwise):
    """x rounded to a floating point format with `exponent_bits` and `mantissa_bits`, kept in its own dtype."""

    name = "reduce_precision"
    preserves_zero = True
    is_cheap_to_repeat = True
    accepts = ("float",)

    def infer(self, x, *, exponent_bits, mantissa_bits):
        if exponent_bits < 1 or mantissa_bits < 0:
            raise ValueError(
                f"reduce_precision needs exponent_bits ≥ 1 and mantissa_bits ≥ 0, got {exponent_bits} and "
                f"{mantissa_bits}"
            )
        return super().infer(x)

    def host(self, x, *, exponent_bits, mantissa_bits):
        limits = ml_dtypes.finfo(x.dtype)
        bits = x.view(np.dtype(f"uint{8 * x.dtype.itemsize}"))
        sign = bits >> (limits.bits - 1) << (limits.bits - 1)
        size = bits ^ sign
        dropped = limits.nmant - mantissa_bits
        if dropped > 0:  # to the nearest, ties to even; a carry goes into the exponent
            odd = (size >> dropped) & 1
            size = (size + ((1 << (dropped - 1)) - 1) + odd) >> dropped << dropped
        own_bias = (1 << (limits.nexp - 1)) - 1
        if exponent_bits < limits.nexp:
            bias = (1 << (exponent_bits - 1)) - 1
            infinity = ((1 << limits.nexp) - 1) << limits.nmant
            size = np.where(size >= (own_bias + bias + 1) << limits.nmant, infinity, size)
            size = np.where(size < (own_bias - bias + 1) << limits.nmant, 0, size)
        result = (size.astype(bits.dtype) | sign).view(x.dtype)
        return np.where(np.isnan(x), x if mantissa_bits else np.inf, result).astype(x.dtype)

    def emit(self, builder, x, *, exponent_bits, mantissa_bits):
        attributes = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
        return builder.op("reduce_precision", (x,), x.aval, attributes)

    def tangent(self, position, dx, out, x, *, exponent_bits, mantissa_bits):
        return reduce_precision(dx, exponent_bits, mantissa_bits)

    def transpose(self, cotangent, x, *, exponent_bits, mantissa_bits):
        return (reduce_precision(cotangent, exponent_bits, mantissa_bits),)


convert_element_type_p = ConvertElementType()
bitcast_convert_type_p = BitcastConvertType()
real_p = Real()
imag_p = Imag()
complex_p = Complex()
conj_p = Conj()
reduce_precision_p = ReducePrecision()


def convert_element_type(x, new_dtype: Any, weak_type: bool = False):
    """The elements of x as `new_dtype`; x itself if it has that type already."""
    new_dtype = dtypes.as_exact_dtype(new_dtype)
    aval = aval_of(x)
    if aval.dtype == new_dtype and aval.weak_type == weak_type and hasattr(x, "aval"):
        return x
    return convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)


def bitcast_convert_type(x, new_dtype: Any):
    """The bits of x as `new_dtype`."""
    return bitcast_convert_type_p.bind(x, new_dtype=dtypes.as_exact_dtype(new_dtype))


real = real_p.bind
imag = imag_p.bind
complex_ = binary(complex_p)


def conj(x):
    """The conjugate of x, complex even if x is real."""
    return conj_p.bind(x, input_dtype=aval_of(x).dtype)


def reduce_precision(x, exponent_bits: int, mantissa_bits: int):
    """x rounded to a floating point format of the given size."""
    return reduce_precision_p.bind(x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)
