"""The FFT: `fft` over the last axes of an array.

`FFT` gives yₖ = Σⱼ xⱼ exp(−2πi jk/n); `IFFT` is its inverse. `RFFT` takes real arrays and leaves out the half of the
result that is the conjugate of the other half; `IRFFT` is its inverse. All are linear.
"""

from __future__ import annotations

import enum
import math

import numpy as np

from purax.config import config
from purax.core.avals import ShapedArray, aval_of
from purax.core.dtypes import dtype_name
from purax.primitives import layouts
from purax.primitives.elementwise.conversion import complex_, conj, real
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.linalg.lapack import complex_dtype, real_dtype
from purax.primitives.shape.broadcasting import Linear, move_axis
from purax.primitives.shape.slicing import pad
from purax.xla import native
from purax.xla.stablehlo import integers

_REAL = (np.dtype(np.float32), np.dtype(np.float64))
_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))
MAX_AXES = 3  # of one transform in XLA
KERNEL_SIZE = 4096  # elements from which on the native kernel is called
KERNEL_LENGTH = 8192  # of a line that it transforms in one go; longer ones are cut in two factors


class FftType(enum.IntEnum):
    """Which of FFTs: forwards or backwards (I), and of complex or of real (R) arrays."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class FFT(Linear):
    """The FFT over as many of the last axes as there are `fft_lengths`."""

    name = "fft"
    is_heavy = True

    def infer(self, x, *, fft_type, fft_lengths):
        kind = FftType(fft_type).name
        wanted, what = (
            (_REAL, "float32 or float64") if kind == "RFFT" else (_COMPLEX, "complex64 or complex128")
        )
        if x.dtype not in wanted:
            raise TypeError(f"fft: {kind} takes {what}, got {x.str_short()} of dtype {dtype_name(x.dtype)}")
        count = len(fft_lengths)
        if not 1 <= count <= MAX_AXES:
            raise ValueError(f"fft: there must be one to {MAX_AXES} fft_lengths, got {fft_lengths}")
        if x.ndim < count:
            raise ValueError(
                f"fft: an array of shape {x.shape} has no {count} axes for fft_lengths={fft_lengths}"
            )
        last = fft_lengths[-1]
        sizes = (*fft_lengths[:-1], last // 2 + 1) if kind == "IRFFT" else tuple(fft_lengths)
        if x.shape[-count:] != sizes:
            raise ValueError(
                f"fft: for {kind} with fft_lengths={fft_lengths} the last axes must have the sizes {sizes}, but the "
                f"shape is {x.shape}"
            )
        if kind == "RFFT":
            return ShapedArray((*x.shape[:-1], last // 2 + 1 if last else 0), complex_dtype(x.dtype))
        if kind == "IRFFT":
            return ShapedArray((*x.shape[:-1], last), real_dtype(x.dtype))
        return x.strip_weak_type()

    def lay_out(self, out, x, *, fft_type, fft_lengths):
        count = x.ndim - len(fft_lengths)
        return layouts.in_front(self.name, count, [x], [out])[0]

    def host(self, x, *, fft_type, fft_lengths):
        if not x.size or not math.prod(fft_lengths):
            aval = self.infer(aval_of(x), fft_type=fft_type, fft_lengths=fft_lengths)
            return np.zeros(aval.shape, aval.dtype)
        if len(fft_lengths) == 1:
            if fft_type == FftType.FFT:
                return np.fft.fft(x)
            if fft_type == FftType.IFFT:
                return np.fft.ifft(x)
            return np.fft.rfft(x) if fft_type == FftType.RFFT else np.fft.irfft(x, fft_lengths[0])
        axes = tuple(range(-len(fft_lengths), 0))
        if fft_type == FftType.IRFFT:
            return np.fft.irfftn(x, fft_lengths, axes)
        transform = (np.fft.fftn, np.fft.ifftn, np.fft.rfftn)[fft_type]
        return transform(x, axes=axes)

    def host_work(self, x, *, fft_type, fft_lengths):
        return 4 * x.size

    def padded(self, at, avals, operands, *, fft_type, fft_lengths):
        if any(axis >= avals[0].ndim - len(fft_lengths) for axis in at.padded_axes(avals[0])):
            at.refuse(self.name, avals, "the axis that is transformed is padded")
        return self.bind(*operands, fft_type=fft_type, fft_lengths=at.rooms(fft_lengths))

    def lower(self, builder, x, *, fft_type, fft_lengths):
        aval = self.infer(x.aval, fft_type=fft_type, fft_lengths=fft_lengths)
        if not x.aval.size or not aval.size:
            return builder.constant(0, aval)
        if fft_type == FftType.IRFFT and len(fft_lengths) > 1 and builder.platform != "cpu":
            # GPU libraries leave it open what becomes of input that is not symmetric: only the last axis is halved.
            count = len(fft_lengths) - 1
            first = x.ndim - len(fft_lengths)
            order = (*range(first), x.ndim - 1, *range(first, x.ndim - 1))
            back = (*range(first), *range(first + 1, x.ndim), first)
            moved = _emit_transposed(builder, x, order)
            moved = self._emit(builder, moved, moved.aval, FftType.IFFT, fft_lengths[:count])
            x = _emit_transposed(builder, moved, back)
            fft_lengths = fft_lengths[count:]
        batch = x.ndim - len(fft_lengths)
        # XLA gathers an array that is sharded over its batch, which costs more than any kernel.
        is_sharded = builder.module.mesh is not None and not builder.is_local
        size = KERNEL_SIZE if is_sharded else x.aval.size
        if native.serves(builder, batch) and _has_kernel(size, fft_type, fft_lengths):
            outer = native.leading_count(builder, math.prod(x.shape[:batch]))
            first, second, third = (*fft_lengths, 1, 1)[:MAX_AXES]
            return native.call(
                builder, "fft", (x,), (aval,), batch_axes=batch, kind=int(fft_type), outer=outer,
                axes=len(fft_lengths), first=first, second=second, third=third,
            )[0]  # fmt: skip
        return self._emit(builder, x, aval, fft_type, fft_lengths)

    def _emit(self, builder, x, aval, fft_type, fft_lengths):
        kind = FftType(fft_type).name
        attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {integers(fft_lengths)}"
        result = builder.op("fft", (x,), aval, attributes)
        return _row_by_row(builder, result) if builder.platform == "cpu" else result

    def transpose(self, cotangent, x, *, fft_type, fft_lengths):
        if fft_type == FftType.RFFT:
            return (_transpose_of_rfft(cotangent, fft_lengths),)
        if fft_type == FftType.IRFFT:
            return (_transpose_of_irfft(cotangent, fft_lengths),)
        return (fft(cotangent, fft_type, fft_lengths),)  # the matrix exp(∓2πi jk/n) is symmetric

    def batch(self, operands, batch_axes, **params):
        return self.bind(move_axis(operands[0], batch_axes[0], 0), **params), 0


def _has_kernel(size: int, fft_type: FftType, lengths: tuple[int, ...]) -> bool:
    """Whether `purax/native/fft.cc` transforms arrays of so many elements, and faster than XLA does."""
    last = lengths[-1]
    if fft_type in (FftType.RFFT, FftType.IRFFT):
        if last % 2:
            return False
        last //= 2
    lines = (*lengths[:-1], last)
    return (
        size >= KERNEL_SIZE
        and all(_is_smooth(n) for n in lines)
        and all(n <= KERNEL_LENGTH for n in lengths[:-1])
        and (last <= KERNEL_LENGTH or last // _divisor(last) <= KERNEL_LENGTH)
    )


def _is_smooth(n: int) -> bool:
    """Whether `n` is a product of primes up to 13."""
    for prime in (2, 3, 5, 7, 11, 13):
        while n % prime == 0:
            n //= prime
    return n == 1


def _divisor(n: int) -> int:
    """The largest divisor of `n` up to its square root."""
    return next(d for d in range(math.isqrt(n), 0, -1) if n % d == 0)


def _transpose_of_rfft(cotangent, lengths):
    """The real part of the transform of the cotangent, with zeros for the half that is left out."""
    missing = lengths[-1] - aval_of(cotangent).shape[-1]
    config = [(0, 0, 0)] * (aval_of(cotangent).ndim - 1) + [(0, missing, 0)]
    whole = pad(cotangent, np.zeros((), aval_of(cotangent).dtype), config)
    return real(fft(whole, FftType.FFT, lengths))


def _transpose_of_irfft(cotangent, lengths):
    """The conjugate of the transform, where elements that stand for two count twice."""
    n = lengths[-1]
    spectrum = conj(fft(cotangent, FftType.RFFT, lengths))
    aval = aval_of(spectrum)
    weights = np.full(n // 2 + 1, 2.0)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    weights = (weights / math.prod(lengths)).astype(real_dtype(aval.dtype))
    spread = np.broadcast_to(weights, aval.shape)
    return mul(spectrum, complex_(np.ascontiguousarray(spread), np.zeros((), spread.dtype)))


def _emit_transposed(builder, x, order):
    aval = x.aval.with_shape(tuple([x.shape[axis] for axis in order]))
    return builder.op("transpose", (x,), aval, f"permutation = {integers(order)}")


fft_p = FFT()


def fft(x, fft_type: FftType, fft_lengths):
    """The FFT over the last axes; see `FFT`."""
    return fft_p.bind(x, fft_type=FftType(fft_type), fft_lengths=tuple(fft_lengths))


def _row_by_row(builder, x):
    """An array that lies in memory row by row, as XLA's FFT on the CPU wants its operand and its result.

    XLA itself does not see to it, and LAPACK's order, column by column, spreads from where the result is used. Exported
    programs have no such call, and several devices share no constraint.
    """
    if not config.native_kernels or not (builder.module.mesh is None or builder.is_local):
        return x
    axes = ", ".join(map(str, reversed(range(x.ndim))))
    layout = f"[dense<[{axes}]> : tensor<{x.ndim}xindex>]"
    text = f'call_target_name = "LayoutConstraint", operand_layouts = {layout}, result_layouts = {layout}'
    return builder.op("custom_call", (x,), x.aval, text)
