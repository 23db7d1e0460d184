"""Fits the polynomials of `purax.primitives.elementwise.short_formulas` and
`purax.primitives.elementwise.fast_exponentials`, prints them and their errors.

Each interpolates at Chebyshev points in the longer format of the machine's C library; the error is the largest relative
one of the function that is made of it. Needs SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from scipy import special

LONG = np.longdouble


def fit(function: Callable, low: float, high: float, degree: int) -> np.ndarray:
    """The coefficients, highest power first, of the polynomial that interpolates at Chebyshev points."""
    count = degree + 1
    points = np.cos((2 * np.arange(count) + 1) * np.pi / (2 * count))
    places = (points * (high - low) + (low + high)) / 2
    in_unit = chebyshev.cheb2poly(
        chebyshev.chebfit(points, np.asarray(function(places.astype(LONG)), float), degree)
    )
    scale = np.array([-(low + high) / (high - low), 2 / (high - low)])
    result = np.zeros(1)
    for coefficient in in_unit[::-1]:
        result = polynomial.polyadd(polynomial.polymul(result, scale), [coefficient])
    return result[:count][::-1]


def series(x: np.ndarray, function: Callable, terms: Callable[[int], float], bound: float) -> np.ndarray:
    """A function by its power series near 0, where its closed form cancels."""
    near = sum(LONG(terms(k)) * x**k for k in range(12))
    safe = np.where(np.abs(x) < bound, 1, x)
    return np.where(np.abs(x) < bound, near, function(safe))


def exponential(r):
    return series(r, lambda r: (np.expm1(r) - r) / (r * r), lambda k: 1 / math.factorial(k + 2), 0.05)


def twice(r):
    return series(
        r,
        lambda r: (np.expm1(2 * r) - 2 * r) / (r * r),
        lambda k: 2.0 ** (k + 2) / math.factorial(k + 2),
        0.05,
    )


def logarithm(f):
    return series(f, lambda f: (np.log1p(f) - f + f * f / 2) / f**3, lambda k: (-1) ** k / (k + 3), 0.02)


def sine(z):
    return series(
        z,
        lambda z: (np.sin(np.sqrt(z)) / np.sqrt(z) - 1) / z,
        lambda k: (-1) ** (k + 1) / math.factorial(2 * k + 3),
        0.5,
    )


def cosine(z):
    return series(
        z,
        lambda z: (np.cos(np.sqrt(z)) - 1 + z / 2) / (z * z),
        lambda k: (-1) ** k / math.factorial(2 * k + 4),
        0.5,
    )


CENTRE = 3.5


def scaled_error(t):
    """(1 + 2y) e^(y²) erfc(y) with t = (y − CENTRE)/(y + CENTRE)."""
    t = np.asarray(t, float)
    y = CENTRE * (1 + t) / (1 - t)
    return (1 + 2 * y) * special.erfcx(y)


HALF = math.log(2) / 2 * 1.001
FITS = {
    "float32: (eʳ − 1 − r)/r²": (exponential, -HALF, HALF, 4),
    "float32: (e²ʳ − 1 − 2r)/r²": (twice, -HALF / 4, HALF * 0.75, 5),
    "float32: (log(1 + f) − f + f²/2)/f³": (logarithm, -0.2929, 0.4143, 8),
    "short: (eʳ − 1 − r)/r²": (exponential, -HALF, HALF, 5),
    "short: (sin √z/√z − 1)/z": (sine, 0.0, (math.pi / 2) ** 2 * 1.001, 4),
    "short: (cos √z − 1 + z/2)/z²": (cosine, 0.0, (math.pi / 2) ** 2 * 1.001, 4),
    "short: (1 + 2y) e^(y²) erfc(y)": (scaled_error, -1.0, 1.0 - 1e-12, 12),
}


def main() -> None:
    for name, (function, low, high, degree) in FITS.items():
        coefficients = fit(function, low, high, degree)
        places = np.linspace(low, high, 20001, dtype=LONG)
        error = np.abs(np.polyval(coefficients.astype(LONG), places) / function(places) - 1).max()
        print(f"{name}: error {float(error):.1e}\n    {', '.join(f'{c:.17g}' for c in coefficients)}")


if __name__ == "__main__":
    main()
