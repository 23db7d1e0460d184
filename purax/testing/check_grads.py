"""`check_grads`: compares derivatives with finite differences, in both modes, to any order.

Along random directions v, with step ε: forward mode is compared with (f(x + εv) − f(x − εv)) / 2ε, reverse mode with
forward mode by ⟨ȳ, f'(x) v⟩ = ⟨f'(x)ᵀ ȳ, v⟩. Higher orders apply the same to the derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api.autodiff import jvp, vjp
from purax.core import dtypes
from purax.core.limits import finite
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.testing.closeness import Tolerance, chosen
from purax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten
from purax.xla.array import from_numpy

_TOLERANCES = {
    "float16": 1e-2,
    "bfloat16": 1e-1,
    "float32": 5e-3,
    "float64": 1e-5,
    "complex64": 5e-3,
    "complex128": 1e-5,
}
_STEPS = {2: 1e-1, 4: 1e-2, 8: 1e-4}


def check_grads(
    f: Callable,
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: Tolerance = None,
) -> None:
    """Raises an `AssertionError` if derivatives of `f` disagree with finite differences.

    Args:
        f: the function, of arrays and trees of them.
        args: where to check it.
        order: up to which derivative.
        modes: which of "fwd" and "rev".
        atol: absolute tolerance, a number or a dict of numbers by dtype; by the dtype if not given.
        rtol: relative tolerance, likewise.
        eps: the step of the finite differences, likewise.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.test_util import check_grads
    >>> check_grads(jnp.sin, (1.0,), order=2)
    """
    if isinstance(modes, str):  # one mode, or both
        modes = [mode for mode in ("fwd", "rev") if mode in modes] or [modes]
    unknown = set(modes) - {"fwd", "rev"}
    if unknown:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {sorted(unknown)}")
    args = tuple(tree_map(to_array, arg) for arg in finite(args))
    _check(f, args, order, tuple(modes), atol, rtol, eps, np.random.default_rng(0), "f")


def _check(f, args, order, modes, atol, rtol, eps, generator, name) -> None:
    if order < 1:
        return
    if "fwd" in modes:
        check_jvp(
            f, lambda primals, tangents: jvp(f, primals, tangents), args, atol, rtol, eps, "", generator, name
        )
        directions = _directions(args, generator)
        derivative = lambda *xs: jvp(f, xs, directions)[1]  # noqa: E731
        _check(derivative, args, order - 1, modes, atol, rtol, eps, generator, f"jvp({name})")
    if "rev" in modes:
        check_vjp(f, lambda *xs: vjp(f, *xs), args, atol, rtol, eps, "", generator, name)
        out, _ = vjp(f, *args)
        cotangent = _directions(out, generator)
        derivative = lambda *xs: _inexact_only(vjp(f, *xs)[1](cotangent))  # noqa: E731
        _check(derivative, args, order - 1, modes, atol, rtol, eps, generator, f"vjp({name})")


def check_jvp(
    f: Callable,
    f_jvp: Callable,
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: Tolerance = None,
    err_msg: str = "",
    generator: np.random.Generator | None = None,
    name: str = "f",
) -> None:
    """Checks that `f_jvp(primals, tangents)` gives the value of `f` and its derivative by finite differences."""
    generator = _generator(generator)
    args = tuple(tree_map(to_array, arg) for arg in finite(args))
    directions = _directions(args, generator)
    out, tangent = f_jvp(args, directions)
    _close(f"{err_msg} the value of jvp({name})".lstrip(), out, f(*args), atol, rtol)

    def compare(differences):
        _close(f"{err_msg} jvp({name}) and finite differences".lstrip(), tangent, differences, atol, rtol)

    _with_differences(compare, f, args, directions, eps)


def check_vjp(
    f: Callable,
    f_vjp: Callable,
    args: Sequence[Any],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: Tolerance = None,
    err_msg: str = "",
    generator: np.random.Generator | None = None,
    name: str = "f",
) -> None:
    """Checks that `f_vjp(*args)` gives the value of `f` and a pullback that agrees with finite differences."""
    generator = _generator(generator)
    args = tuple(tree_map(to_array, arg) for arg in finite(args))
    directions = _directions(args, generator)
    out, pullback = f_vjp(*args)
    _close(f"{err_msg} the value of vjp({name})".lstrip(), out, f(*args), atol, rtol)
    cotangent = _directions(out, generator)
    pulled = _inner(pullback(cotangent), directions)

    def compare(differences):
        forward = _inner(cotangent, differences)
        _close(f"{err_msg} vjp({name}) and finite differences".lstrip(), pulled, forward, atol, rtol, args)

    _with_differences(compare, f, args, directions, eps)


def _generator(given: Any) -> np.random.Generator:
    if given is None:
        return np.random.default_rng(0)
    if not isinstance(given, np.random.Generator):
        raise TypeError(f"generator must be a numpy.random.Generator, got {shown(given)}")
    return given


def _directions(tree: Any, generator: np.random.Generator) -> Any:
    """A random tangent for each array: numbers well away from zero, so that no error is hidden; float0 for integers."""

    def numbers(shape):
        return generator.uniform(0.5, 1.5, shape) * generator.choice([-1.0, 1.0], shape)

    def one(x):
        dtype = np.dtype(x.dtype)
        if not dtypes.is_inexact(dtype):
            return np.zeros(x.shape, dtypes.float0)
        value = numbers(x.shape)
        if dtypes.is_complex(dtype):
            value = value + 1j * numbers(x.shape)
        return to_array(np.asarray(value).astype(dtype)) if dtype.itemsize < 8 else _exact(value, dtype)

    return tree_map(one, tree)


def _exact(value: Any, dtype: np.dtype) -> Any:
    """An array of a 64-bit dtype, whatever the default width."""
    return from_numpy(np.asarray(value, dtype))


def _with_differences(
    compare: Callable[[Any], None],
    f: Callable,
    args: Sequence[Any],
    directions: Sequence[Any],
    eps: Tolerance,
) -> None:
    """Compares with differences; where they disagree and no step was asked for, with those of smaller steps.

    Central differences are wrong by ε²/6 times the third derivative, much for a function that bends strongly, and by
    any amount next to a pole. Rounding asks for a large step, which comes first.
    """
    for scale in (1.0, 1 / 4, 1 / 16, 1 / 64):
        try:
            return compare(_differences(f, args, directions, eps, scale))
        except AssertionError:
            if eps is not None or scale == 1 / 64:
                raise


def _differences(
    f: Callable, args: Sequence[Any], directions: Sequence[Any], eps: Tolerance, scale: float = 1.0
) -> Any:
    """(f(x + εv) − f(x − εv)) / 2ε"""

    def moved(sign):
        def one(x, v):
            if not dtypes.is_inexact(x.dtype):
                return x
            step = sign * scale * _step(x.dtype, eps)
            return _exact(np.asarray(x) + np.asarray(step, np.asarray(x).real.dtype) * np.asarray(v), x.dtype)

        return [tree_map(one, x, v) for x, v in zip(args, directions, strict=True)]

    steps = {_step(x.dtype, eps) for x in tree_leaves(tuple(args)) if dtypes.is_inexact(x.dtype)}
    if len(steps) != 1:  # one step for all, so that there is one quotient
        return _differences(f, args, directions, max(steps, default=1.0), scale)
    width = 2 * scale * steps.pop()

    def quotient(above, below):
        if not dtypes.is_inexact(above.dtype):
            return np.zeros(above.shape, dtypes.float0)
        wide = np.complex128 if dtypes.is_complex(above.dtype) else np.float64
        return (np.asarray(above).astype(wide) - np.asarray(below).astype(wide)) / width

    return tree_map(quotient, f(*moved(1)), f(*moved(-1)))


def _step(dtype: Any, eps: Tolerance) -> float:
    return chosen(eps, [dtype], {}, _STEPS[np.zeros((), dtype).real.dtype.itemsize])


def _inner(a: Any, b: Any) -> Any:
    """Σ a·b over all inexact arrays of two trees; the real part for complex ones, as cotangents pair with tangents."""
    total = 0.0
    for x, y in zip(tree_leaves(a), tree_leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype == dtypes.float0 or y.dtype == dtypes.float0:
            continue
        wide = np.complex128 if dtypes.is_complex(x.dtype) or dtypes.is_complex(y.dtype) else np.float64
        total = total + np.real(np.sum(x.astype(wide) * y.astype(wide)))
    return total


def _inexact_only(tree: Any) -> Any:
    """A tree of cotangents without those of integers, so that it can be differentiated again."""
    return [x for x in tree_leaves(tree) if x.dtype != dtypes.float0]


def _close(what: str, given: Any, wanted: Any, atol: Tolerance, rtol: Tolerance, args: Any = None) -> None:
    given_leaves, tree = tree_flatten(given)
    wanted_leaves, wanted_tree = tree_flatten(wanted)
    if tree != wanted_tree:
        raise AssertionError(f"{what} have different structures: {tree} and {wanted_tree}")
    for i, (a, b) in enumerate(zip(given_leaves, wanted_leaves, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype == dtypes.float0 or b.dtype == dtypes.float0:
            continue
        kinds = [x.dtype for x in (*tree_leaves(args if args is not None else ()), a)]
        wide = np.complex128 if dtypes.is_complex(a.dtype) or dtypes.is_complex(b.dtype) else np.float64
        np.testing.assert_allclose(
            a.astype(wide),
            b.astype(wide),
            atol=chosen(atol, kinds, _TOLERANCES, 1e-5),
            rtol=chosen(rtol, kinds, _TOLERANCES, 1e-5),
            err_msg=f"check_grads: {what} differ in leaf {i} of {tree_unflatten(tree, range(len(given_leaves)))}",
        )
