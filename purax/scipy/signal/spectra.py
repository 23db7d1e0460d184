"""Spectra of signals: short-time Fourier transforms and what is averaged of them.

A signal is cut into segments that overlap; each is multiplied by a window and transformed. The inverse adds segments
where they overlap, which is the transpose of cutting.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.api.autodiff import linear_transpose
from purax.api.stages import ShapeDtypeStruct
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import strong_array
from purax.numpy._promotion import as_array, promotes_freely
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.gather_scatter import PROMISE_IN_BOUNDS, GatherDimensionNumbers, gather
from purax.primitives.shape.slicing import slice as cut
from purax.scipy.signal.detrending import detrend as without_trend
from purax.typing import ArrayLike


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: how much of each frequency a signal has at each time.

    Args:
        x: the signal.
        fs: samples per unit of time.
        window: the name of a window, a tuple of a name and parameters (see `scipy.signal.get_window`), or an array.
        nperseg: the length of segments.
        noverlap: by how much neighbours overlap, half of their length if None.
        nfft: the length of the transform; segments are padded with zeros.
        detrend: False, "constant" or "linear" (see `detrend`), or a function of segments, whose last axis is time.
        return_onesided: whether to leave out negative frequencies, if the signal is real.
        boundary: how the signal goes on at both ends, for half a segment: "zeros", "even", "odd", "constant"; None if
            it does not.
        padded: whether to add zeros at the end, so that all of the signal is in a segment.
        axis: the axis of time.

    Returns:
        Frequencies, times of segments, and the transform, with frequencies in the place of `axis` and times on the last
        axis.

    >>> import purax as px, purax.numpy as jnp
    >>> frequencies, times, transform = px.scipy.signal.stft(jnp.ones(8), nperseg=4)
    >>> transform.shape, times
    ((3, 5), Array([0., 2., 4., 6., 8.], dtype=float32))
    """
    return _transform(
        "stft", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, "spectrum", axis,
        boundary=boundary, padded=padded, is_power=False,
    )  # fmt: skip


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power spectral density of two signals, by the method of Welch.

    Args:
        x, y: the signals; the shorter one is padded with zeros. If `y` is None it is `x`, and the result is real.
        fs, window, noverlap, nfft, detrend, return_onesided, axis: as those of `stft`.
        nperseg: the length of segments; 256, or that of the window if it is an array.
        scaling: "density" for power per unit of frequency, "spectrum" for power.
        average: how to average over segments: "mean" or "median".

    Returns:
        Frequencies, and the density, with frequencies in the place of `axis`.

    >>> import purax as px, purax.numpy as jnp
    >>> x = jnp.sin(jnp.arange(64.0))
    >>> frequencies, density = px.scipy.signal.csd(x, x, nperseg=16)
    >>> float(frequencies[jnp.argmax(density.real)])
    0.1875
    """
    frequencies, _, spectra = _transform(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis,
        boundary=None, padded=False, is_power=True,
    )  # fmt: skip
    return frequencies, _average("csd", spectra, average)


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal: the mean over segments, by the method of Welch.

    The arguments are those of `csd`.

    >>> import purax as px, purax.numpy as jnp
    >>> frequencies, density = px.scipy.signal.welch(jnp.sin(jnp.arange(64.0)), nperseg=16)
    >>> float(frequencies[jnp.argmax(density)])
    0.1875
    """
    frequencies, density = csd(
        x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average
    )
    return frequencies, density.real


def periodogram(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "boxcar",
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
) -> tuple[Array, Array]:
    """The power spectral density of a signal as one segment. The arguments are those of `csd`.

    >>> import purax as px, purax.numpy as jnp
    >>> frequencies, density = px.scipy.signal.periodogram(jnp.sin(jnp.arange(64.0)))
    >>> float(frequencies[jnp.argmax(density)])
    0.15625
    """
    x = jnp.asarray(x)
    size = x.shape[axis]
    if nfft is not None and nfft < size:
        x, size = jnp.moveaxis(jnp.moveaxis(x, axis, -1)[..., :nfft], -1, axis), nfft
    return welch(x, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)


@promotes_freely
def istft(
    Zxx: ArrayLike,  # noqa: N803
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal of a short-time Fourier transform: the inverse of `stft`.

    Args:
        Zxx: the transform.
        fs, window, noverlap: those that `stft` was called with.
        nperseg, nfft: the same; by default they are told from the number of frequencies.
        input_onesided: whether negative frequencies were left out.
        boundary: whether the signal was extended at both ends.
        time_axis, freq_axis: the axes of times and frequencies.

    Returns:
        Times, and the signal, with time in the place of the axes of the transform.

    >>> import purax as px, purax.numpy as jnp
    >>> _, _, transform = px.scipy.signal.stft(jnp.arange(8.0), nperseg=4)
    >>> px.scipy.signal.istft(transform)[1].round(4)
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    transform = strong_array(Zxx, "istft")
    if transform.ndim < 2:
        raise located(
            ValueError,
            f"istft: the transform needs axes of frequencies and times, got shape {transform.shape}",
        )
    frequency, time = freq_axis % transform.ndim, time_axis % transform.ndim
    if frequency == time:
        raise located(ValueError, f"istft: time_axis and freq_axis must be different axes, both are {time}")
    transform = convert_element_type(transform, dtypes.to_complex_dtype(transform.dtype))
    transform = jnp.moveaxis(transform, (time, frequency), (-2, -1))
    count, points = transform.shape[-2:]
    default = 2 * (points - 1) if input_onesided else points
    nperseg = default if nperseg is None else int(nperseg)
    if nperseg < 1:
        raise located(ValueError, f"istft: nperseg must be positive, got {nperseg}")
    if nfft is None:
        nfft = nperseg if input_onesided and nperseg == default + 1 else default
    if nfft < nperseg:
        raise located(ValueError, f"istft: nfft must not be less than nperseg, got {nfft} and {nperseg}")
    overlap = nperseg // 2 if noverlap is None else int(noverlap)
    step = _step("istft", nperseg, overlap)
    real = dtypes.to_real_dtype(transform.dtype)
    taper = _window("istft", window, nperseg, real)
    if input_onesided:
        segments = jnp.fft.irfft(transform, nfft)[..., :nperseg]
    else:
        segments = jnp.fft.ifft(transform)[..., :nperseg]
    size = nperseg + (count - 1) * step
    signal = _overlap_add(segments * taper * jnp.sum(taper), size, step)
    weight = _overlap_add(jnp.broadcast_to(taper**2, (count, nperseg)), size, step)
    if boundary:
        half = nperseg // 2
        signal, weight = signal[..., half : size - half], weight[half : size - half]
    signal = signal / jnp.where(weight > 1e-10, weight, 1)
    # Without its last two axes, time stands where the first of them was removed from.
    place = time if time < frequency else time - 1
    signal = jnp.moveaxis(signal, -1, place)
    times = jnp.arange(signal.shape[place], dtype=real) / fs
    return times, signal


@promotes_freely
def _transform(
    name: str,
    x: Any,
    y: Any,
    fs: Any,
    window: Any,
    nperseg: int | None,
    noverlap: int | None,
    nfft: int | None,
    detrend: Any,
    return_onesided: bool,
    scaling: str,
    axis: int,
    *,
    boundary: str | None,
    padded: bool,
    is_power: bool,
) -> tuple[Array, Array, Array]:
    """Frequencies, times, and the windowed Fourier transform of all segments, or the product of two of them."""
    if scaling not in ("density", "spectrum"):
        raise located(ValueError, f"{name}: scaling must be 'density' or 'spectrum', got {shown(scaling)}")
    if boundary not in (None, "zeros", "even", "odd", "constant"):
        raise located(
            ValueError,
            f"{name}: boundary must be 'zeros', 'even', 'odd', 'constant' or None, got {shown(boundary)}",
        )
    signals = [strong_array(x, name, 0)] + ([] if y is None else [strong_array(y, name, 1)])
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(*signals))
    real = dtypes.to_real_dtype(dtype)
    signals = [convert_element_type(signal, dtype) for signal in signals]
    for signal in signals:
        if not -signal.ndim <= axis < signal.ndim:
            raise located(
                ValueError, f"{name}: axis {axis} is out of bounds for a signal of shape {signal.shape}"
            )
    place = axis if axis < 0 else axis - signals[0].ndim  # counted from the end, it survives broadcasting
    signals = [jnp.moveaxis(signal, axis, -1) for signal in signals]
    size = max(signal.shape[-1] for signal in signals)
    if size == 0 or any(signal.size == 0 for signal in signals):
        raise located(ValueError, f"{name}: the signal is empty: shape {signals[0].shape}")
    signals = [_padded(signal, 0, size - signal.shape[-1]) for signal in signals]

    if not isinstance(window, (str, tuple)):
        given = jnp.shape(window)
        if len(given) != 1 or given[0] > size:
            raise located(
                ValueError,
                f"{name}: a window must be a vector that is no longer than the signal, which has {size} samples, "
                f"got shape {given}",
            )
        if nperseg is not None and int(nperseg) != given[0]:
            raise located(ValueError, f"{name}: the window has {given[0]} elements, but nperseg is {nperseg}")
        nperseg = given[0]
    nperseg = min(256 if nperseg is None else int(nperseg), size)
    if nperseg < 1:
        raise located(ValueError, f"{name}: nperseg must be positive, got {nperseg}")
    overlap = nperseg // 2 if noverlap is None else int(noverlap)
    step = _step(name, nperseg, overlap)
    nfft = nperseg if nfft is None else int(nfft)
    if nfft < nperseg:
        raise located(ValueError, f"{name}: nfft must not be less than nperseg, got {nfft} and {nperseg}")
    taper = _window(name, window, nperseg, real)

    signals = [_extended(signal, boundary, nperseg // 2) for signal in signals]
    size = signals[0].shape[-1]
    if padded:
        missing = -(size - nperseg) % step % nperseg
        signals = [_padded(signal, 0, missing) for signal in signals]
        size += missing
    is_onesided = return_onesided and not dtypes.is_complex(dtype)
    transform = jnp.fft.rfft if is_onesided else jnp.fft.fft
    spectra = [
        transform(taper * _without_trend(name, _segments(signal, nperseg, step), detrend), nfft)
        for signal in signals
    ]
    if scaling == "density":
        scale = 1 / (fs * jnp.sum(taper**2))
    else:
        scale = 1 / jnp.sum(taper) ** 2
    if not is_power:
        result = spectra[0] * jnp.sqrt(scale).astype(real)
    else:
        if len(spectra) == 1:
            result = jnp.square(spectra[0].real) + jnp.square(spectra[0].imag)
        else:
            result = spectra[0].conj() * spectra[1]
        result = result * jnp.asarray(scale, real)
        if is_onesided:
            twice = np.full(result.shape[-1], 2, real)
            twice[0] = 1
            if nfft % 2 == 0:
                twice[-1] = 1
            result = result * twice
    count = result.shape[-2]
    times = (np.arange(count) * step + nperseg / 2 - (nperseg / 2 if boundary else 0)).astype(real)
    frequencies = (np.fft.rfftfreq if is_onesided else np.fft.fftfreq)(nfft).astype(real)
    # (…, time, frequency) to (…, frequency in the place of the signal's axis, …, time)
    result = jnp.moveaxis(jnp.swapaxes(result, -1, -2), -2, place - 1)
    return as_array(frequencies, name) * fs, as_array(times, name) / fs, result


def _step(name: str, nperseg: int, overlap: int) -> int:
    if not 0 <= overlap < nperseg:
        raise located(
            ValueError, f"{name}: noverlap must be in [0, nperseg), got {overlap} with nperseg={nperseg}"
        )
    return nperseg - overlap


def _window(name: str, window: Any, size: int, dtype: Any) -> Array:
    if isinstance(window, (str, tuple)):
        from scipy.signal import get_window

        return jnp.asarray(get_window(window, size), dtype)
    array = as_array(window, name)
    if array.shape != (size,):
        raise located(
            ValueError, f"{name}: the window must have the shape ({size},) of segments, got {array.shape}"
        )
    return convert_element_type(array, dtype)


def _without_trend(name: str, segments: Array, detrend: Any) -> Array:
    if callable(detrend):
        return detrend(segments)
    if not detrend:
        return segments
    return without_trend(segments, -1, detrend)


def _padded(signal: Array, before: int, after: int) -> Array:
    if not before and not after:
        return signal
    return jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(before, after)])


def _extended(signal: Array, boundary: str | None, width: int) -> Array:
    if boundary is None or not width:
        return signal
    if boundary == "zeros":
        return _padded(signal, width, width)
    widths = [(0, 0)] * (signal.ndim - 1) + [(width, width)]
    if boundary == "constant":
        return jnp.pad(signal, widths, "edge")
    return jnp.pad(signal, widths, "reflect", reflect_type=boundary)


def _segments(signal: Array, size: int, step: int) -> Array:
    """(…, time) to (…, segment, time in the segment)"""
    count = (signal.shape[-1] - size) // step + 1
    piece = math.gcd(size, step)
    if size // piece <= 32:
        # Segments are made of whole pieces: the j-th piece of all of them is one slice of all pieces.
        total = ((count - 1) * step + size) // piece
        pieces = signal[..., : total * piece].reshape(*signal.shape[:-1], total, piece)
        stride = step // piece
        first, last = (0,) * (pieces.ndim - 2), pieces.shape[:-2]
        columns = [
            cut(
                pieces,
                (*first, j, 0),
                (*last, j + (count - 1) * stride + 1, piece),
                (*[1] * len(first), stride, 1),
            )
            for j in range(size // piece)
        ]
        return columns[0] if len(columns) == 1 else jnp.concatenate(columns, axis=-1)
    outer = signal.ndim - 1
    starts = (np.arange(count, dtype=np.int32) * step)[:, None]
    numbers = GatherDimensionNumbers((*range(outer), outer + 1), (), (outer,))
    return gather(
        signal, starts, numbers, (*signal.shape[:-1], size), mode=PROMISE_IN_BOUNDS, indices_are_sorted=True
    )


def _overlap_add(segments: Array, size: int, step: int) -> Array:
    """(…, segment, time in the segment) to (…, time)"""
    shape = ShapeDtypeStruct((*segments.shape[:-2], size), segments.dtype)
    length = segments.shape[-1]
    (signal,) = linear_transpose(lambda x: _segments(x, length, step), shape)(segments)
    return signal


def _average(name: str, spectra: Array, average: str) -> Array:
    """The average over segments, which are on the last axis."""
    if average == "mean":
        return jnp.mean(spectra, axis=-1)
    if average != "median":
        raise located(ValueError, f"{name}: average must be 'mean' or 'median', got {shown(average)}")
    count = spectra.shape[-1]
    # The expected median of `count` exponential variables of mean 1: 1 - 1/2 + 1/3 - …
    bias = 1 + np.sum([1 / (k + 1) - 1 / k for k in range(2, count, 2)])
    if dtypes.is_complex(spectra.dtype):
        from_parts = jnp.median(spectra.real, axis=-1) + 1j * jnp.median(spectra.imag, axis=-1)
        return from_parts / bias
    return jnp.median(spectra, axis=-1) / bias
