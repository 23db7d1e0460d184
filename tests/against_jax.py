"""jax as a black box: one program, written for either library, run by both and compared.

A program is a function `f(m, *args)` that finds everything in the module `m`, which is purax or jax. Its value, both
derivatives, the derivative of the derivative and its batched form are computed by each library; jax does it in one
compiled program, which is what makes hundreds of them cheap.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import purax

BATCH = 3


def known_options(options: dict[str, Any]) -> dict[str, Any]:
    """Those options of the compiler that the installed one has."""
    program, known = jax.jit(lambda: 1).lower(), {}
    for name, value in options.items():
        try:
            program.compile({name: value})
        except Exception as error:
            if "No such compile option" not in str(error):
                raise
        else:
            known[name] = value
    return known


QUICKLY = known_options(  # for programs that run once
    {
        "xla_backend_optimization_level": 0,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
    }
)
# Elsewhere programs are compiled as users' are, and nothing is computed operation by operation, each of them compiled.
ON_CPU = (os.environ.get("TEST_PLATFORM") or "cpu") == "cpu"
OPTIONS = QUICKLY if ON_CPU else {}
# Both compute in float32; derivatives of derivatives add up a few roundings. Half precision has its own width.
TOLERANCES = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-12,
    "complex128": 1e-12,
}


class Program(NamedTuple):
    """A program and where it is tried.

    Attributes:
        name: for messages.
        function: `f(m, *args)`, with `m` one of the two libraries.
        args: NumPy arrays, numbers, or trees of them.
        forms: which of `FORMS` are compared.
        compiled: whether purax computes them compiled too.
    """

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    forms: tuple[str, ...]
    compiled: bool = True

    def __str__(self) -> str:
        return self.name


def numbers(
    shape: Any, low: float = -2.0, high: float = 2.0, dtype: Any = np.float32, seed: int = 0
) -> np.ndarray:
    generator = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind == "c":
        return (generator.uniform(low, high, shape) + 1j * generator.uniform(low, high, shape)).astype(dtype)
    return generator.uniform(low, high, shape).astype(dtype)


def is_inexact(x: Any) -> bool:
    return isinstance(x, float | complex) or (
        hasattr(x, "dtype") and purax.numpy.issubdtype(x.dtype, np.inexact)
    )


def direction(x: Any, seed: int) -> Any:
    """A tangent for `x` that both libraries accept."""
    if isinstance(x, float | complex):
        return type(x)(0.5 + 0.25 * seed)
    if not is_inexact(x):
        return np.zeros(np.shape(x), purax.float0)
    value = numbers(
        x.shape, dtype=np.complex64 if np.dtype(x.dtype).kind == "c" else np.float32, seed=seed + 7
    )
    return value.astype(x.dtype)


# --- the forms in which a program is compared; each takes the library, a function of arrays, and the arguments


def value(m, f, args, cotangent):
    return f(*args)


def jvp(m, f, args, cotangent):
    return m.jvp(f, args, directions(m, args, 1))


def vjp(m, f, args, cotangent):
    return without_float0(m, m.vjp(f, *args)[1](cotangent))


def second(m, f, args, cotangent):
    """The derivative of the reverse derivative, forwards."""
    pulled = lambda *xs: without_float0(m, m.vjp(f, *xs)[1](cotangent))  # noqa: E731
    return m.jvp(pulled, args, directions(m, args, 2))[1]


def reverse_twice(m, f, args, cotangent):
    """The reverse derivative of the reverse derivative."""
    pulled = lambda *xs: without_float0(m, m.vjp(f, *xs)[1](cotangent))  # noqa: E731
    out, pullback = m.vjp(pulled, *args)
    return without_float0(m, pullback(directions(m, out, 4)))


def vmap(m, f, args, cotangent):
    in_axes, batched = batch(m, args)
    return m.vmap(f, in_axes=in_axes)(*batched)


def vmap_vjp(m, f, args, cotangent):
    in_axes, batched = batch(m, args)
    return m.vmap(lambda *xs: vjp(m, f, xs, cotangent), in_axes=in_axes)(*batched)


FORMS = {form.__name__: form for form in (value, jvp, vjp, second, reverse_twice, vmap, vmap_vjp)}
ALL = ("value", "jvp", "vjp", "second", "vmap", "vmap_vjp")
NOT_DIFFERENTIATED = ("value", "vmap")
# A gradient of purax is as weak as the argument; jax's may be either, as its conversions happen to be transposed.
WEAKLY_TYPED = ("value", "jvp", "vmap")
ONCE = ("value", "jvp", "vjp", "vmap", "vmap_vjp")


def directions(m, args, seed: int):
    return arrays(m, m.tree.map(lambda x: direction(x, seed), args))


def without_float0(m, tree):
    return [x for x in m.tree.leaves(tree) if x.dtype != purax.float0]


def batch(m, args):
    """Arguments with a batch axis at the end of the first, in front of the others; Python numbers are not batched."""
    in_axes, batched = [], []
    for position, x in enumerate(args):
        leaves = m.tree.leaves(x)
        if not all(hasattr(leaf, "shape") for leaf in leaves):
            in_axes.append(None)
            batched.append(x)
            continue
        axis = -1 if position == 0 and hasattr(x, "shape") else 0
        in_axes.append(axis)
        batched.append(arrays(m, m.tree.map(functools.partial(stacked, axis=axis), x)))
    if all(axis is None for axis in in_axes):
        return (0, *in_axes[1:]), [m.numpy.asarray(np.asarray([args[0]] * BATCH, np.float32)), *args[1:]]
    return tuple(in_axes), batched


def stacked(x: Any, axis: int) -> np.ndarray:
    x = np.asarray(x)
    scales = [1 - 0.125 * i if is_inexact(x) else 1 for i in range(BATCH)]
    return np.stack([x * np.asarray(scale, x.dtype) for scale in scales], axis)


def cotangent_of(m, function: Callable, args: tuple) -> Any:
    return m.tree.map(lambda y: direction(y, 3), m.eval_shape(function, *args))


def run_jax(program: Program) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jax.jit(all_forms(jax, program)).lower().compile(QUICKLY)()


def run_purax(program: Program, compiled: bool) -> dict[str, Any]:
    function = all_forms(purax, program)
    return purax.jit(function, compiler_options=OPTIONS)() if compiled else function()


def all_forms(m, program: Program) -> Callable[[], dict[str, Any]]:
    f = functools.partial(program.function, m)
    cotangent = cotangent_of(m, f, program.args) if set(program.forms) - set(NOT_DIFFERENTIATED) else None
    args, cotangent = arrays(m, program.args), arrays(m, cotangent)
    return lambda: {form: FORMS[form](m, f, args, cotangent) for form in program.forms}


def arrays(m, tree: Any) -> Any:
    """NumPy's arrays as those of the library."""
    is_array = lambda x: isinstance(x, np.ndarray) and x.dtype != purax.float0  # noqa: E731
    return m.tree.map(lambda x: m.numpy.asarray(x) if is_array(x) else x, tree)


def compare(given: dict[str, Any], wanted: dict[str, Any], what: str) -> None:
    """Raises an AssertionError unless purax's results agree with jax's in structure, type and value."""
    for form, expected in wanted.items():
        paths, tree = purax.tree_util.tree_flatten_with_path(given[form])
        leaves, jax_tree = jax.tree.flatten(expected)
        assert str(tree) == str(jax_tree), f"{what}, {form}: structure {tree}, jax has {jax_tree}"
        for (path, x), y in zip(paths, leaves, strict=True):
            agree(x, y, f"{what}, {form}{purax.tree_util.keystr(path)}", form in WEAKLY_TYPED)


def agree(x: Any, y: Any, what: str, weak_types: bool = True) -> None:
    weak = lambda a: bool(getattr(a, "weak_type", False))  # noqa: E731
    x = purax.numpy.asarray(x) if isinstance(x, bool | int | float | complex) else x
    x_type, y_type = (f"{np.dtype(a.dtype).name}{list(np.shape(a))}" for a in (x, y))
    assert x_type == y_type, f"{what}: type {x_type}, jax has {y_type}"
    if weak_types:
        assert weak(x) == weak(y), f"{what}: weak_type={weak(x)}, jax has {weak(y)}"
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind in "biuV":
        np.testing.assert_array_equal(x, y, err_msg=what)
        return
    tolerance = TOLERANCES[x.dtype.name]
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    scale = max(1.0, float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y))))
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def check(program: Program) -> None:
    """Compares all forms of a program with jax's."""
    expected = run_jax(program)
    if ON_CPU:
        compare(run_purax(program, compiled=False), expected, f"{program}")
    if program.compiled or not ON_CPU:
        compare(run_purax(program, compiled=True), expected, f"jit of {program}")
