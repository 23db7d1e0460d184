"""Window functions of signal processing, and the Bessel function that one of them is made of.

Windows depend on nothing but their length, so they are computed in double precision and rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.control_flow.custom_jvp import custom_jvp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.errors import shown
from purax.numpy._elementwise.transcendental import exp
from purax.numpy._programs import concrete_value, constant_value, host_array
from purax.numpy._promotion import fused, inexact
from purax.primitives.elementwise.arithmetic import abs_, div
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.special.special import bessel_i0e, bessel_i1e
from purax.typing import ArrayLike

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))  # of lengths


def _length(name: str, M: Any) -> int:
    try:
        known = concrete_value(M) if isinstance(M, Array) else M
        is_float = isinstance(known, float) or getattr(known, "dtype", "") in _FLOATS
        return int(known) if is_float else as_size(M)
    except (TypeError, ValueError, OverflowError):
        raise located(TypeError, f"{name}: M must be a known integer, got {shown(M)}") from None


def _window(values: np.ndarray) -> Array:
    return host_array(values.astype(dtypes.default_float()))


def hanning(M: int) -> Array:
    """The Hann window 0.5 - 0.5 cos(2πn / (M - 1)).

    Args:
        M: the number of points.

    Returns:
        A vector; 1 in the middle, 0 at the ends.

    >>> import purax.numpy as jnp
    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.hanning(_length("hanning", M)))


def hamming(M: int) -> Array:
    """The Hamming window 0.54 - 0.46 cos(2πn / (M - 1)).

    Args:
        M: the number of points.

    >>> import purax.numpy as jnp
    >>> jnp.hamming(5)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)
    """
    return _window(np.hamming(_length("hamming", M)))


def bartlett(M: int) -> Array:
    """The triangular window 1 - |2n / (M - 1) - 1|.

    Args:
        M: the number of points.

    >>> import purax.numpy as jnp
    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.bartlett(_length("bartlett", M)))


def blackman(M: int) -> Array:
    """The Blackman window 0.42 - 0.5 cos(2πn / (M - 1)) + 0.08 cos(4πn / (M - 1)).

    Args:
        M: the number of points.

    >>> import purax.numpy as jnp
    >>> jnp.blackman(3)
    Array([-1.3877788e-17,  1.0000000e+00, -1.3877788e-17], dtype=float32)
    """
    return _window(np.blackman(_length("blackman", M)))


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window I₀(β √(1 - (2n / (M - 1) - 1)²)) / I₀(β).

    Args:
        M: the number of points.
        beta: how narrow the window is; 0 for a rectangle.

    Returns:
        A vector.

    >>> import purax.numpy as jnp
    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    length = _length("kaiser", M)
    known = constant_value(beta)
    if known is not None:
        return _window(np.kaiser(length, float(known)))
    if length <= 1:
        return _window(np.ones(max(length, 0)))
    shape = np.sqrt(1 - np.square(2 * np.arange(length) / (length - 1) - 1))
    narrowness = inexact("kaiser", beta)
    return div(i0(narrowness * shape.astype(narrowness.dtype)), i0(narrowness))


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.i0(jnp.array([0.0, 1.0]))
    Array([1.       , 1.2660658], dtype=float32)
    """
    x = inexact("i0", x)
    dtype, _ = dtypes.dtype_and_weak(x)
    if dtypes.is_complex(dtype):
        raise located(ValueError, f"i0 takes real numbers, got {dtypes.dtype_name(dtype)}")
    return _i0(x)


@fused(lambda x: np.i0(x.astype(np.longdouble if x.dtype == np.float64 else np.float64)).astype(x.dtype))
def _i0(x):
    return _i0_by_steps(x)


@custom_jvp  # the steps have corners at 0, which I₀ has not
def _i0_by_steps(x):
    return _grown(x, bessel_i0e(x))


@_i0_by_steps.defjvp
def _i0_rule(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _i0_by_steps(x), mul(dx, _grown(x, bessel_i1e(x)))


def _grown(x, scaled):
    """e^|x| times a scaled function, which may be finite where e^|x| is not."""
    root = exp(mul(abs_(x), 0.5))
    return mul(mul(root, scaled), root)
