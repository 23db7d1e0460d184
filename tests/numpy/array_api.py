"""What the tests of the array API standard share: its dtypes by kind, and generated arrays."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import purax.numpy as xp
from purax.config import config

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = [*SIGNED, *UNSIGNED]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMERIC = [*INTEGERS, *FLOATS, *COMPLEX]
ALL = ["bool", *NUMERIC]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, 1e-3, 1e6, np.inf, -np.inf, np.nan]


def defaults() -> dict[str, np.dtype]:
    """The default dtypes of the mode that is set."""
    names = ("float64", "complex128", "int64") if config.enable_x64 else ("float32", "complex64", "int32")
    return dict(zip(("real floating", "complex floating", "integral"), map(np.dtype, names), strict=True))


def ours(x: np.ndarray):
    """A NumPy array as an array of purax, of the same dtype."""
    return xp.asarray(x, dtype=x.dtype)


@st.composite
def arrays(draw, dtypes=tuple(ALL), min_ndim=0, max_ndim=3, min_side=0, max_side=4, special=False):
    """A NumPy array of small numbers, or of special ones, too."""
    shape = tuple(draw(st.lists(st.integers(min_side, max_side), min_size=min_ndim, max_size=max_ndim)))
    return draw(filled(shape, draw(st.sampled_from(dtypes)), special))


@st.composite
def filled(draw, shape, dtype, special=False):
    count = int(np.prod(shape))
    kind = np.dtype(dtype).kind
    if kind == "b":
        numbers = st.booleans()
    elif kind in "iu":
        numbers = st.integers(0 if kind == "u" else -9, 9)
    else:
        numbers = st.sampled_from(SPECIAL) if special else st.integers(-40, 40).map(lambda n: n / 4)
    flat = np.array(draw(st.lists(numbers, min_size=count, max_size=count)), dtype)
    if kind == "c":
        imaginary = np.array(draw(st.lists(numbers, min_size=count, max_size=count)))
        flat.imag = imaginary
    return flat.reshape(shape)
