"""The FFT, as `jax.lax.fft`."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from purax.core.array import Array
from purax.core.limits import finite
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.primitives.fft import FftType
from purax.primitives.fft import fft as transform
from purax.typing import ArrayLike


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The FFT over the last axes.

    Args:
        x: a complex array, or a real one for RFFT.
        fft_type: a `FftType` or its name: FFT, IFFT, RFFT or IRFFT.
        fft_lengths: the number of points for each of the last axes, up to three. The axes have these sizes already,
            except the last one for IRFFT, whose size is half of its length, plus 1.

    Returns:
        A complex array, or a real one for IRFFT.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.fft(jnp.array([1.0, 0.0]), "RFFT", (2,))
    Array([1.+0.j, 1.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(
                f"fft: fft_type must be one of {', '.join(FftType.__members__)}, got {shown(fft_type)}"
            )
        fft_type = FftType[fft_type.upper()]
    return transform(to_array(x), fft_type, tuple(map(operator.index, finite(fft_lengths))))


__all__ = ["FftType", "fft"]
