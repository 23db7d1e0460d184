"""Arguments on which the distributions are compared with SciPy: numbers in and around the support, and parameters."""

from __future__ import annotations

import numpy as np

NAN, INF = np.nan, np.inf
REAL = [-9.0, -3.0, -1.0, -0.1, 0.0, 0.3, 1.0, 2.5, 8.0, 14.0]
POSITIVE = [1e-4, 0.2, 1.0, 1.7, 6.0, 30.0]
UNIT = [0.01, 0.2, 0.5, 0.77, 0.99]
EDGES = [-INF, INF, NAN]
COUNTS = [-1.0, 0.0, 1.0, 3.0, 4.0, 7.0, 2.5]
PROBABILITIES = [1e-6, 0.1, 0.5, 0.8, 0.999, 0.0, 1.0, -0.1, 1.1, NAN]
SHIFTS = [(0.0, 1.0), (0.5, 2.0)]


def grid(*rows) -> list[np.ndarray]:
    """All combinations, as columns."""
    return [np.ravel(x) for x in np.meshgrid(*rows, indexing="ij")]


def shifted(values, *shapes) -> list[np.ndarray]:
    """Values with shape parameters, for two pairs of loc and scale."""
    parts = []
    for loc, scale in SHIFTS:
        x, *others = grid(np.array(values) * scale + loc, *shapes)
        parts.append([x, *others, np.full_like(x, loc), np.full_like(x, scale)])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def located(values, *shapes) -> list[np.ndarray]:
    """Counts with parameters, for two values of loc."""
    parts = []
    for loc in (0.0, 2.0):
        x, *others = grid(np.array(values) + loc, *shapes)
        parts.append([x, *others, np.full_like(x, loc)])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


OF_QUANTILES = ("ppf", "isf")
ARGUMENTS: dict[str, list[np.ndarray]] = {
    "bernoulli": located([0.0, 1, 2, -1], [0.2, 0.9, 0.5, 1.5]),
    "beta": shifted([*UNIT, -0.5, 1.5, NAN], [0.5, 1.5, 40.0], [0.7, 3.0]),
    "betabinom": located(COUNTS, [4.0, 9.0], [0.5, 3.0], [0.7, 5.0]),
    "binom": located(COUNTS, [4.0, 9.0], [0.2, 0.9, 0.0, 1.0]),
    "cauchy": shifted([*REAL, *EDGES]),
    "chi2": shifted([*POSITIVE, -1.0], [0.7, 2.5, 9.0, -1.0]),
    "expon": shifted([*POSITIVE, -1.0, 0.0, NAN]),
    "gamma": shifted([*POSITIVE, -1.0], [0.3, 1.0, 2.5, 9.0]),
    "gennorm": grid([*REAL], [0.5, 1.3, 4.0]),
    "geom": located(COUNTS, [0.2, 0.9, 1.0, -1.0]),
    "gumbel_l": shifted([*REAL[:-2], 3.0]),
    "gumbel_r": shifted([*REAL[2:], -2.0]),
    "laplace": shifted([*REAL, *EDGES]),
    "logistic": shifted([*REAL, *EDGES]),
    "nbinom": located(COUNTS, [0.5, 4.0, 9.0], [0.2, 0.9]),
    "norm": shifted([*REAL, *EDGES]),
    "pareto": shifted([*POSITIVE, 1.0], [0.5, 3.0, -1.0]),
    "poisson": located(COUNTS, [0.1, 1.5, 6.0, -1.0]),
    "t": shifted([*REAL, NAN, 1e9], [0.5, 3.0, 200.0]),
    "truncnorm": shifted([*REAL], [-8.0, -0.5, 1.5], [2.0, 7.0]),
    "uniform": shifted([-0.5, 0.2, 0.7, 1.4, NAN]),
    "vonmises": grid([-3.0, -1, 0, 0.4, 2, 3.1], [0.1, 2.0, 50.0]),
    "wrapcauchy": grid([-1.0, 0, 0.4, 3, 6.2, 7], [0.1, 0.5, 0.95]),
}
QUANTILE_ARGUMENTS: dict[str, list[np.ndarray]] = {
    "bernoulli": grid(PROBABILITIES, [0.2, 0.9]),
    "pareto": [np.tile(x, 2) for x in grid(PROBABILITIES, [0.5, 3.0], [0.5], [2.0])],
    **{
        name: grid(PROBABILITIES, [0.5], [2.0])
        for name in ("cauchy", "expon", "gumbel_l", "gumbel_r", "logistic", "norm", "uniform")
    },
}
