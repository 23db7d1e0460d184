"""Functions of `purax.numpy` under transformations, from one table: vmap equals a loop, jit equals eager, gradients
equal finite differences, and enable_x64 widens as jax does.
"""

from __future__ import annotations

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.xla.array import from_numpy

X = np.random.default_rng(0).normal(size=(3, 5))
Y = np.random.default_rng(1).normal(size=(3, 5))
MASK = X > -0.5
INDEX = np.array([3, 0, 4])

# name -> function of a namespace and one row (5 numbers), or two rows
ROWS = {
    "sum": lambda n, x: n.sum(x, keepdims=True),
    "sum where": lambda n, x: n.sum(x, where=x > 0, initial=2.0),
    "prod": lambda n, x: n.prod(x),
    "max": lambda n, x: n.max(x),
    "mean": lambda n, x: n.mean(x, keepdims=True),
    "mean where": lambda n, x: n.mean(x, where=x > -0.5),
    "var": lambda n, x: n.var(x, ddof=1),
    "std": lambda n, x: n.std(x),
    "ptp": lambda n, x: n.ptp(x),
    "nansum": lambda n, x: n.nansum(x),
    "nanmax": lambda n, x: n.nanmax(x),
    "nanmean": lambda n, x: n.nanmean(x),
    "nanstd": lambda n, x: n.nanstd(x, ddof=1),
    "average": lambda n, x: n.average(x, weights=x * x + 1),
    "cov": lambda n, x: n.cov(n.stack([x, x * x])),
    "corrcoef": lambda n, x: n.corrcoef(n.stack([x, x * x]))[0],
    "median": lambda n, x: n.median(x),
    "quantile": lambda n, x: n.quantile(x, 0.3),
    "quantiles": lambda n, x: (
        n.quantile(x, n.array([0.2, 0.9]), method="hazen") if n is jnp else n.quantile(x, 0.3)
    ),
    "nanmedian": lambda n, x: n.nanmedian(x),
    "cumsum": lambda n, x: n.cumsum(x),
    "cumprod": lambda n, x: n.cumprod(x),
    "nancumsum": lambda n, x: n.nancumsum(x),
    "cumulative_sum": lambda n, x: n.cumulative_sum(x, include_initial=True),
    "dot": lambda n, x: n.dot(x, x),
    "outer": lambda n, x: n.outer(x, x),
    "kron": lambda n, x: n.kron(x, x),
    "cross": lambda n, x: n.cross(x[:3], x[2:]),
    "einsum": lambda n, x: n.einsum("i,j,j->i", x, x, x),
    "tensordot": lambda n, x: n.tensordot(x, x, 0),
    "trace": lambda n, x: n.trace(n.outer(x, x)),
    "sort": lambda n, x: n.sort(x),
    "sort descending": lambda n, x: n.sort(x, descending=True),
    "take": lambda n, x: n.take(x, n.array([0, 4, 0, -2])),
    "take_along_axis": lambda n, x: n.take_along_axis(x, n.array([3, 1]), 0),
    "select": lambda n, x: n.select([x > 1, x > 0], [x, x * x], -x),
    "choose": lambda n, x: n.choose(n.array([0, 1, 1, 0, 1]), [x, -x], mode="clip"),
    "piecewise": lambda n, x: n.piecewise(x, [x > 0], [lambda v: v * v, lambda v: -v]),
    "compress": lambda n, x: n.compress(n.array([True, False, True]), x, size=2),
    "diff": lambda n, x: n.diff(x, 2),
    "gradient": lambda n, x: n.gradient(x),
    "trapezoid": lambda n, x: n.trapezoid(x),
    "unwrap": lambda n, x: n.unwrap(x * 4),
    "interp": lambda n, x: n.interp(x, n.array([-1.0, 0.0, 2.0]), n.array([0.0, 3.0, -1.0])),
    "polyval": lambda n, x: n.polyval(x, 0.5),
    "polymul": lambda n, x: n.polymul(x, x[:2]),
    "polydiv": lambda n, x: n.polydiv(x, n.array([1.0, 0.5]))[0],
    "polyint": lambda n, x: n.polyint(x, 2),
    "convolve": lambda n, x: n.convolve(x, n.array([1.0, -2.0, 0.5]), mode="same"),
    "correlate": lambda n, x: n.correlate(x, x, mode="full"),
    "i0": lambda n, x: n.i0(x),
    "histogram": lambda n, x: n.histogram(x, bins=3, range=(-3, 3), weights=x)[0],
    "apply_along_axis": lambda n, x: n.apply_along_axis(lambda v: v.sum() * v, 0, x),
    "vectorize": lambda n, x: n.vectorize(lambda a, b: a * b + a)(x, x[::-1]),
    "put": lambda n, x: n.put(x, n.array([0, 2]), x[3:], inplace=False),
    "place": lambda n, x: n.place(x, n.array([True, False, True, False, True]), x[:2], inplace=False),
    "put_along_axis": lambda n, x: n.put_along_axis(x, n.array([1]), x[:1] * 2, 0, inplace=False),
    "norm": lambda n, x: n.sqrt(n.vdot(x, x)),
    "vander": lambda n, x: n.vander(x, 3),
    "fill": lambda n, x: n.take(x, n.array([0, 9]), fill_value=2.0),
}

# and functions whose results are indices or booleans, which have no derivative
DISCRETE = {
    "argmax": lambda n, x: n.argmax(x),
    "any": lambda n, x: n.any(x > 1),
    "count_nonzero": lambda n, x: n.count_nonzero(x > 0),
    "argsort": lambda n, x: n.argsort(x, descending=True),
    "lexsort": lambda n, x: n.lexsort((x, n.round(x))),
    "searchsorted": lambda n, x: n.searchsorted(n.array([-1.0, 0.0, 1.0]), x),
    "digitize": lambda n, x: n.digitize(x, n.array([1.0, 0.0, -1.0])),
    "bincount": lambda n, x: n.bincount((x > 0).astype(int), length=3),
    "nonzero": lambda n, x: n.nonzero(x > 0, size=4, fill_value=-1)[0],
    "argwhere": lambda n, x: n.argwhere(x > 0, size=3),
    "unique": lambda n, x: n.unique(n.round(x), size=4, return_counts=True)[1],
    "unique inverse": lambda n, x: n.unique(n.round(x), size=4, return_inverse=True)[1],
    "isin": lambda n, x: n.isin(n.round(x), n.array([0.0, 1.0])),
    "union1d": lambda n, x: n.union1d(n.round(x), n.array([0.0, 7.0]), size=6),
    "intersect1d": lambda n, x: n.intersect1d(n.round(x), n.array([0.0, 1.0]), size=2),
    "setdiff1d": lambda n, x: n.setdiff1d(n.round(x), n.array([0.0, 1.0]), size=3),
    "setxor1d": lambda n, x: n.setxor1d(n.round(x), n.array([0.0, 1.0]), size=5),
    "packbits": lambda n, x: n.packbits(x > 0),
    "unpackbits": lambda n, x: n.unpackbits(n.packbits(x > 0), count=5),
    "histogram": lambda n, x: n.histogram(x, bins=3)[0],
    "partition": lambda n, x: n.partition(x, 2)[2],
}


def close(got, expected):
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", [*ROWS, *[f"{name}*" for name in DISCRETE]])
def test_vmap_is_a_loop_and_jit_is_eager(name):
    function = DISCRETE[name[:-1]] if name.endswith("*") else ROWS[name]
    x = from_numpy(X.astype(np.float32))
    rows = [function(jnp, row) for row in x]
    batched = purax.jit(purax.vmap(lambda row: function(jnp, row), in_axes=1))(x.T)
    close(batched, np.stack([np.asarray(row) for row in rows]))


@pytest.mark.parametrize("name", ROWS)
def test_gradients(name):
    x, direction, step = X[0], Y[0], 1e-6
    out = np.asarray(ROWS[name](jnp, from_numpy(x)), np.float64)
    weights = np.random.default_rng(2).normal(size=out.shape)

    def loss(v):
        return jnp.sum(ROWS[name](jnp, v) * from_numpy(weights))

    slope = float((np.asarray(purax.grad(loss)(from_numpy(x))) * direction).sum())
    forth, back = (float(loss(from_numpy(x + sign * step * direction))) for sign in (1, -1))
    assert slope == pytest.approx((forth - back) / (2 * step), rel=1e-4, abs=1e-6)
    tangent = purax.jvp(loss, (from_numpy(x),), (from_numpy(direction),))[1]
    assert float(tangent) == pytest.approx(slope, rel=1e-6, abs=1e-9)


WIDENED = [name for name in ROWS if name not in ("quantiles", "apply_along_axis", "vectorize")]


@pytest.mark.parametrize("kind", ("int32", "float32", "float64"))
def test_types_with_64_bits_enabled(kind):
    x = (X[0] * 3).astype(kind)
    for name in (*WIDENED, *DISCRETE):
        if kind == "int32" and name in ("put", "place", "put_along_axis", "interp", "unwrap", "piecewise"):
            continue
        function = ROWS.get(name) or DISCRETE[name]
        with jax.enable_x64(True):
            expected = jax.eval_shape(lambda v, f=function: f(jax_numpy, v), x)
        with purax.enable_x64(True):
            got = function(jnp, jnp.asarray(x))
        # The array API standard asks for the default integers, int64 here; jax gives int32.
        dtype = np.int64 if name == "searchsorted" else expected.dtype
        assert (got.shape, got.dtype) == (expected.shape, dtype), name
