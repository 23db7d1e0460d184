"""Measures the error of every elementwise function, in units in the last place, and writes docs/accuracy.md.

Each function is tried over its whole range: all numbers of 16 bits, and for wider dtypes numbers spread evenly over all
bit patterns, with more of them where functions are used most. The reference is double precision for float32 and
narrower, and the longer format of the machine's C library for float64. purax is measured twice, small eager arrays
(NumPy's kernels) and compiled programs, beside jax, if it is installed, and NumPy.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import purax
import purax.numpy as jnp
from purax.primitives.special.special import bessel_on_host
from purax.xla.array import from_numpy

ALLOWED = 1.0  # how many ulps more than the better of jax and NumPy
EXCEPTIONS: dict[tuple[str, str], str] = {}
"""Compiled functions that are allowed to be behind, since the better formula costs more than it is worth."""
PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"


def sinc(x: np.ndarray) -> np.ndarray:
    """sin(πx)/(πx) with πx reduced exactly."""
    whole = np.rint(x)
    sign = np.where(np.fmod(whole, 2) == 0, 1, -1)
    pi = 4 * np.arctan(x.dtype.type(1))
    return np.where(x == 0, 1, sign * np.sin(pi * (x - whole)) / (pi * np.where(x == 0, 1, x)))


def logaddexp2(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.maximum(x, y) + np.log1p(np.exp2(-np.abs(x - y))) / np.log(x.dtype.type(2))


def i0(x: np.ndarray) -> np.ndarray:
    return np.exp(np.abs(x)) * bessel_on_host(x, 0)


class Function(NamedTuple):
    """A function, the interval of its arguments, how its exact values are found if not by NumPy's function."""

    name: str
    low: float = -np.inf
    high: float = np.inf
    reference: Callable[..., np.ndarray] | None = None
    arity: int = 1


OF_ONE = """
exp exp2 expm1 cbrt square reciprocal sin cos tan arctan sinh cosh tanh arcsinh deg2rad rad2deg abs floor ceil trunc
rint sign negative
""".split()
OF_TWO = """
add subtract multiply divide power float_power arctan2 hypot logaddexp fmod remainder floor_divide maximum copysign
heaviside
""".split()
FUNCTIONS = [
    *[Function(name) for name in OF_ONE],
    *[Function(name, 0) for name in ("log", "log2", "log10", "sqrt")],
    *[Function(name, -1, 1) for name in ("arcsin", "arccos", "arctanh")],
    Function("log1p", -1),
    Function("arccosh", 1),
    Function("i0", -700, 700, i0),
    Function("sinc", reference=sinc),
    *[Function(name, arity=2) for name in OF_TWO],
    Function("logaddexp2", reference=logaddexp2, arity=2),
]
DTYPES = {"float32": np.float64, "float64": np.longdouble, "float16": np.float64, "bfloat16": np.float64}
"""The dtypes that are measured, and the one that the reference is computed in."""


# --- arguments


def samples(dtype: str, count: int) -> np.ndarray:
    """Numbers of a dtype, of all sizes and both signs: zeros and normal numbers."""
    own = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if own.itemsize == 2:
        everything = np.arange(2**16, dtype=np.uint16).view(own)
    else:
        bits = np.dtype(f"u{own.itemsize}")
        top = np.asarray(np.inf, own).view(bits)
        positive = np.linspace(0, float(top) * (1 - 2e-16), count // 2).astype(bits).view(own)
        generator = np.random.default_rng(0)
        near = [generator.uniform(-r, r, count // 8) for r in (1, 10, 100, 1000)]
        around_one = 1 + generator.normal(size=count // 8) * 10.0 ** generator.uniform(-12, 0, count // 8)
        everything = np.concatenate(
            [positive, -positive, *[part.astype(own) for part in (*near, around_one)]]
        )
    with np.errstate(invalid="ignore"):
        wide = np.abs(everything.astype(np.float64))
    return everything[
        np.isfinite(wide) & ((wide == 0) | (wide >= float(ml_dtypes.finfo(own).smallest_normal)))
    ]


def arguments(function: Function, dtype: str, count: int) -> list[np.ndarray]:
    x = samples(dtype, count)
    if function.arity == 1:
        return [x[(x >= function.low) & (x <= function.high)]]
    generator = np.random.default_rng(1)
    x, y = (generator.permutation(x)[:count] for _ in range(2))
    small = [generator.uniform(-9, 9, count).astype(x.dtype) for _ in range(2)]  # of like size
    return [np.concatenate([x, small[0]]), np.concatenate([y, small[1]])]


# --- errors


def errors(result: np.ndarray, exact: np.ndarray, dtype: np.dtype, scale: np.ndarray | None = None) -> float:
    """The largest error in ulps of `dtype`, of the exact values or, where that is larger, of `scale`.

    Exact values that are subnormal may be rounded to zero or to the least normal number, as compiled programs do.
    """
    limits = ml_dtypes.finfo(dtype)
    eps, least, most = float(limits.eps), float(limits.smallest_normal), float(limits.max)
    wide = exact.dtype.type
    got = result.astype(wide)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(exact if scale is None else np.maximum(np.abs(exact), scale)), wide(least))
        ulp = wide(2) ** np.floor(np.log2(np.where(np.isfinite(size), size, 1))) * wide(eps)
        # What rounds to infinity is as near to the largest number as to the next one that there is not.
        got = np.where(np.isinf(got) & (np.abs(exact) > most), exact, got)
        exact = np.where(np.isinf(got) & np.isinf(exact) & (got == exact), 0, exact)
        got = np.where(np.isinf(got) & (exact == 0), 0, got)
        error = np.abs(got - exact) / ulp
    both_nan = np.isnan(got) & np.isnan(exact)
    subnormal = np.abs(exact) < least
    error = np.where(both_nan, 0, np.where(subnormal & (np.abs(got) <= least), 0, error))
    return float(np.where(np.isnan(error), np.inf, error).max()) if error.size else 0.0


class Row(NamedTuple):
    function: str
    dtype: str
    eager: float
    compiled: float
    jax: float | None
    numpy: float | None

    @property
    def best(self) -> float:
        return min([peer for peer in (self.jax, self.numpy) if peer is not None], default=np.inf)

    @property
    def is_behind(self) -> bool:
        is_allowed = (self.function, self.dtype) in EXCEPTIONS
        return max(self.eager, 0 if is_allowed else self.compiled) > self.best + ALLOWED


def by_parts(function: Callable, operands: list[np.ndarray], size: int = 2000) -> np.ndarray:
    """A function of small eager arrays, one after the other."""
    parts = range(0, max(len(operands[0]), 1), size)
    return np.concatenate(
        [np.asarray(function(*[from_numpy(x[i : i + size]) for x in operands])) for i in parts]
    )


def measure(function: Function, dtype: str, count: int, peer: Any) -> Row:
    """The errors of one function for one dtype."""
    operands = arguments(function, dtype, count)
    own = operands[0].dtype
    wide = DTYPES[dtype]
    numpys = getattr(np, function.name)
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        purax.config.override(enable_x64=dtype == "float64"),
    ):
        warnings.simplefilter("ignore")
        exact = (function.reference or numpys)(*[x.astype(wide) for x in operands])
        exact = np.asarray(exact, wide)
        # A sum's error is that of its larger operand, if the sum is near zero.
        scale = None
        if function.name in ("remainder", "floor_divide"):
            remainders = np.abs(np.fmod(*[x.astype(wide) for x in operands]))
            kept = (remainders == 0) | ~(remainders < float(ml_dtypes.finfo(own).smallest_normal))
            operands, exact = [x[kept] for x in operands], exact[kept]
        if function.name in ("logaddexp", "logaddexp2"):
            scale = np.maximum(*[np.abs(x.astype(wide)) for x in operands])
        ours = getattr(jnp, function.name)
        found = [by_parts(ours, operands), np.asarray(purax.jit(ours)(*[from_numpy(x) for x in operands]))]
        theirs = None
        if peer is not None:
            with peer.enable_x64(dtype == "float64"):
                result = peer.jit(getattr(peer.numpy, function.name))(*operands)
                theirs = errors(np.asarray(result), exact, own, scale)
        result = np.asarray(numpys(*operands))
        numpy_error = errors(result, exact, own, scale) if result.dtype == own else None
    return Row(function.name, dtype, *[errors(x, exact, own, scale) for x in found], theirs, numpy_error)


# --- the page


def shown(value: float | None) -> str:
    if value is None:
        return "–"
    return "∞" if np.isinf(value) else f"{value:.2f}" if value < 1000 else f"{value:.1e}"


def page(rows: list[Row]) -> str:
    lines = [
        "# Accuracy",
        "",
        "The largest error of each elementwise function over its whole range, in units in the last place (ulps), as",
        "`make accuracy` measures it. A correctly rounded result has an error of at most 0.5. *eager* is purax on",
        "small arrays, *compiled* purax under `jit`, on the CPU. ∞ means that a finite result was missed or a NaN is",
        "out of place; – that the library has no such function of this dtype.",
        "",
        "Compiled programs, those of jax too, take subnormal numbers for zero; such arguments, results and remainders",
        "do not count.",
        "The errors of `logaddexp` and `logaddexp2` are in ulps of the larger of result and operands.",
        "",
    ]
    for dtype in DTYPES:
        lines += [f"## {dtype}", "", "| function | eager | compiled | jax | NumPy |", "|---|---|---|---|---|"]
        for row in rows:
            if row.dtype == dtype:
                mark = " ←" if row.is_behind else ""
                numbers = " | ".join(map(shown, (row.eager, row.compiled, row.jax, row.numpy)))
                lines.append(f"| `{row.function}`{mark} | {numbers} |")
        lines.append("")
    for (name, dtype), reason in EXCEPTIONS.items():
        lines += [f"- `{name}` of {dtype}, compiled: {reason}.", ""]
    if any(row.is_behind for row in rows):
        lines.append(f"← More than {ALLOWED:g} ulp behind the better of jax and NumPy.")
    else:
        others = "No other function" if EXCEPTIONS else "No function"
        lines.append(f"{others} is more than {ALLOWED:g} ulp behind the better of jax and NumPy.")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200_000, help="numbers per function and dtype")
    parser.add_argument("--only", nargs="*", help="names of functions; the page is then not written")
    parser.add_argument("--dtypes", nargs="*", default=list(DTYPES), help="which dtypes")
    options = parser.parse_args()
    try:
        import jax as peer
    except ImportError:
        peer = None
    rows = []
    for function in FUNCTIONS:
        if options.only and function.name not in options.only:
            continue
        for dtype in options.dtypes:
            rows.append(measure(function, dtype, options.count, peer))
            row = rows[-1]
            mark = "  <- behind" if row.is_behind else ""
            print(f"{row.function:14}{row.dtype:10}", *[f"{shown(x):>10}" for x in row[2:]], mark, flush=True)
    if not options.only and len(options.dtypes) == len(DTYPES):
        PAGE.write_text(page(rows))
        print(f"written to {PAGE.relative_to(PAGE.parents[1])}")
    return sum(row.is_behind for row in rows) and 1


if __name__ == "__main__":
    sys.exit(main())
