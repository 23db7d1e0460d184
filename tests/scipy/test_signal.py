"""Signals against SciPy in double precision, with the types of jax's results."""

from __future__ import annotations

import jax
import jax.scipy.signal as jax_signal
import numpy as np
import pytest
import scipy.signal

import purax
import purax.numpy as jnp
from purax.scipy import signal

TOLERANCE = 5e-6
generator = np.random.default_rng(0)


def values(shape, dtype):
    x = generator.normal(size=shape)
    return (x + 1j * generator.normal(size=shape) if dtype == "complex64" else x).astype(dtype)


def wide(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) if isinstance(x, np.ndarray) else x


def close(name, got, wanted, types=None):
    got, wanted = (x if isinstance(x, tuple) else (x,) for x in (got, wanted))
    for i, (x, y) in enumerate(zip(got, wanted, strict=True)):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape, f"{name}, result {i}: shape {x.shape}, SciPy has {y.shape}"
        np.testing.assert_allclose(
            x, y, rtol=TOLERANCE, atol=TOLERANCE * np.abs(y).max(), err_msg=f"{name} {i}"
        )
        if types is not None:
            assert x.dtype == (types[i] if isinstance(types, tuple) else types).dtype, f"{name}, result {i}"


SHAPES = [
    ((7,), (3,)),
    ((3,), (7,)),
    ((6,), (4,)),
    ((5, 4), (3, 2)),
    ((2, 3), (4, 5)),
    ((4, 3, 5), (2, 2, 3)),
]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_convolutions_and_correlations(first, second, dtype):
    x, y = values(first, dtype), values(second, dtype)
    for mode in ("full", "same", "valid"):
        for name in ("convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d"):
            if name.endswith("2d") and len(first) != 2:
                continue
            wanted = getattr(scipy.signal, name)(wide(x), wide(y), mode)
            if name == "correlate2d" and mode == "valid" and second > first:
                # SciPy and jax exchange the arrays here and forget to conjugate; `correlate` is right in both.
                wanted = scipy.signal.correlate(wide(x), wide(y), mode)
            close(f"{name} {mode}", getattr(signal, name)(x, y, mode), wanted)
            if name in ("convolve", "correlate"):
                close(f"{name} {mode} fft", getattr(signal, name)(x, y, mode, method="fft"), wanted)
            if name == "convolve2d":
                for boundary in ("wrap", "symm"):
                    wanted = scipy.signal.convolve2d(wide(x), wide(y), mode, boundary)
                    close(f"{name} {mode} {boundary}", signal.convolve2d(x, y, mode, boundary), wanted)
                wanted = scipy.signal.convolve2d(wide(x), wide(y), mode, "fill", 2.5)
                close(f"{name} {mode} fill", signal.convolve2d(x, y, mode, "fill", 2.5), wanted)


def test_types_are_those_of_jax():
    for dtype in ("int32", "uint8", "bool", "float16", "bfloat16", "float32", "complex64"):
        x, y = (np.arange(5) % 2).astype(dtype), np.ones(3, dtype)
        for name in ("convolve", "correlate"):
            wanted = jax.eval_shape(getattr(jax_signal, name), x, y)
            assert getattr(signal, name)(x, y).dtype == wanted.dtype, (name, dtype)


SIGNALS = {"real": values((3, 50), "float32"), "complex": values((3, 50), "complex64")}
OTHER = values((3, 40), "float32")
SPECTRA = [
    {"nperseg": 16},
    {"nperseg": 16, "noverlap": 4},
    {"nperseg": 15, "noverlap": 7, "nfft": 20, "scaling": "spectrum"},
    {"nperseg": 10, "detrend": "linear", "return_onesided": False},
    {"nperseg": 10, "detrend": False, "window": ("kaiser", 4.0), "fs": 10.0},
    {"nperseg": 10, "average": "median"},
    {"nperseg": 2, "axis": 0},
    {"window": np.hanning(12)},
]


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.filterwarnings("ignore:Input data is complex")
def test_welch_and_csd(kind):
    x = SIGNALS[kind]
    for options in SPECTRA:
        close(f"welch {options}", signal.welch(x, **options), scipy.signal.welch(wide(x), **options))
        if "axis" not in options:
            wanted = scipy.signal.csd(wide(x), wide(OTHER), **options)
            close(f"csd {options}", signal.csd(x, OTHER, **options), wanted)
    wanted = jax.eval_shape(
        lambda x, y: (jax_signal.csd(x, y, nperseg=16), jax_signal.welch(x, nperseg=16)), x, OTHER
    )
    got = signal.csd(x, OTHER, nperseg=16), signal.welch(x, nperseg=16)
    assert [[a.dtype for a in pair] for pair in got] == [[a.dtype for a in pair] for pair in wanted]
    for nfft in (None, 32, 64):
        wanted = scipy.signal.periodogram(wide(x), 2.0, nfft=nfft)
        close(f"periodogram {nfft}", signal.periodogram(x, 2.0, nfft=nfft), wanted)


TRANSFORMS = [
    {"nperseg": 16},
    {"nperseg": 16, "noverlap": 4},
    {"nperseg": 15, "noverlap": 7, "nfft": 20},
    {"nperseg": 10, "detrend": "constant", "return_onesided": False},
    {"nperseg": 10, "boundary": "even"},
    {"nperseg": 10, "boundary": "odd", "padded": False},
    {"nperseg": 10, "boundary": "constant"},
    {"nperseg": 10, "boundary": None, "fs": 3.0},
    {"nperseg": 2, "axis": 0},
    {"nperseg": 40, "noverlap": 39},  # so many pieces that segments are gathered
]


@pytest.mark.parametrize("kind", SIGNALS)
@pytest.mark.filterwarnings("ignore:Input data is complex", "ignore:NOLA condition failed")
def test_short_time_fourier_transforms_and_back(kind):
    x = SIGNALS[kind]
    for options in TRANSFORMS:
        got, wanted = signal.stft(x, **options), scipy.signal.stft(wide(x), **options)
        close(f"stft {options}", got, wanted)
        back = {k: options[k] for k in ("nperseg", "noverlap", "nfft", "fs") if k in options}
        back["input_onesided"] = options.get("return_onesided", True) and kind == "real"
        back["boundary"] = options.get("boundary", "zeros") is not None
        if "axis" in options:
            back["freq_axis"] = 0
        times, restored = signal.istft(got[2], **back)
        close(f"istft {options}", restored, scipy.signal.istft(wanted[2], **back)[1])
        # SciPy and jax count the first axis of the signal here, whichever it is; we count time.
        assert times.shape == restored.shape[-1:]
        assert float(times[1]) == pytest.approx(1 / options.get("fs", 1.0))


def test_axes_of_the_inverse_transform():
    transform = values((9, 4, 5), "complex64")
    wanted = scipy.signal.istft(wide(transform), freq_axis=0, time_axis=1)[1]
    close("istft", signal.istft(transform, freq_axis=0, time_axis=1)[1], wanted)


def test_detrend():
    x = SIGNALS["real"]
    for options in ({}, {"type": "constant"}, {"bp": [10, 30]}, {"axis": 0}):
        types = jax.eval_shape(lambda x: jax_signal.detrend(x, **options), x)  # noqa: B023
        close(
            f"detrend {options}",
            signal.detrend(x, **options),
            scipy.signal.detrend(wide(x), **options),
            types,
        )


def test_transformations():
    x = jnp.asarray(SIGNALS["real"][0])
    power = lambda x: signal.welch(x, nperseg=16)[1]  # noqa: E731
    purax.test_util.check_grads(power, (x,), order=1, modes=("fwd", "rev"), atol=2e-2, rtol=2e-2)
    batch = jnp.stack([x, 2 * x])
    np.testing.assert_allclose(purax.vmap(power)(batch), power(batch), rtol=1e-5)
    np.testing.assert_allclose(purax.jit(power)(x), power(x), rtol=1e-5)
    same = lambda x: signal.istft(signal.stft(x, nperseg=10)[2])[1]  # noqa: E731
    np.testing.assert_allclose(purax.jacobian(same)(x), np.eye(50), atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: signal.convolve(x, x, mode="valide"), "mode must be one of"),
        (lambda x: signal.convolve(x, x[None]), "same number of axes"),
        (lambda x: signal.convolve(x, x, method="slow"), "method must be"),
        (lambda x: signal.convolve(x, x[:0]), "must not be empty"),
        (lambda x: signal.correlate2d(x, x), "two matrices"),
        (lambda x: signal.convolve2d(x[None], x[None], boundary="odd"), "boundary must be"),
        (lambda x: signal.fftconvolve(x.reshape(2, 3), x.reshape(3, 2), axes=1), "do not broadcast"),
        (lambda x: signal.convolve(x.reshape(2, 3), x.reshape(3, 2), "valid"), "at least as large"),
        (lambda x: signal.welch(x, nperseg=4, noverlap=4), "noverlap must be in"),
        (lambda x: signal.welch(x, nperseg=4, nfft=3), "nfft must not be less"),
        (lambda x: signal.welch(x, scaling="power"), "scaling must be"),
        (lambda x: signal.welch(x, average="mode"), "average must be"),
        (lambda x: signal.stft(x, boundary="even-ish"), "boundary must be"),
        (lambda x: signal.stft(x, axis=3), "out of bounds"),
        (lambda x: signal.stft(x[:0]), "is empty"),
        (lambda x: signal.istft(x), "axes of frequencies and times"),
        (lambda x: signal.detrend(x, type="square"), "type must be"),
        (lambda x: signal.detrend(x, bp=[9]), "breakpoints must lie in"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call(jnp.arange(6.0))
    assert "test_signal.py" in str(caught.value)
