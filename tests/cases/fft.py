"""Cases for `purax.primitives.fft`."""

import numpy as np

from purax.primitives.fft import FftType, fft_p
from purax.testing.case import case, numbers

PAIRS = ((np.float32, np.complex64), (np.float64, np.complex128))
LENGTHS = ((1,), (2,), (5,), (8,), (3, 4), (2, 3, 5))


def transform(kind, shape, dtype, lengths):
    return case(fft_p, numbers(shape, dtype), linear=(0,), tolerance=None, fft_type=kind, fft_lengths=lengths)


CASES = [
    *[
        transform(kind, (2, *lengths), dtype, lengths)
        for lengths in LENGTHS
        for kind in (FftType.FFT, FftType.IFFT)
        for _, dtype in PAIRS
    ],
    *[transform(FftType.RFFT, (2, *lengths), dtype, lengths) for lengths in LENGTHS for dtype, _ in PAIRS],
    *[
        transform(FftType.IRFFT, (2, *lengths[:-1], lengths[-1] // 2 + 1), dtype, lengths)
        for lengths in LENGTHS
        for _, dtype in PAIRS
    ],
    transform(FftType.FFT, (4,), np.complex64, (4,)),
    transform(FftType.FFT, (2, 3, 4), np.complex64, (4,)),
    transform(FftType.RFFT, (6,), np.float32, (6,)),
    transform(FftType.IRFFT, (4,), np.complex64, (7,)),
    transform(FftType.FFT, (0, 4), np.complex64, (4,)),
    transform(FftType.RFFT, (0, 4), np.float32, (4,)),
    transform(FftType.IRFFT, (0, 3), np.complex64, (4,)),
    transform(FftType.FFT, (2, 0), np.complex64, (0,)),
]
