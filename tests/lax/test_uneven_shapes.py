"""Operands that meet element by element are repeated along axes of size 1 by the operation itself, as in jax: programs
have no equation for it, and their values and derivatives are those of repeated operands."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
from tests.against_jax import QUICKLY

SHAPES = [
    ((1, 2), (2, 1)),
    ((3, 1, 2), (1, 4, 2)),
    ((2,), (3, 2)),
    ((1,), (3,)),
    ((), (2, 3)),
    ((2, 1), (2, 3)),
]
ANY = "add sub mul div rem max min pow atan2 nextafter complex eq ne lt le gt ge igamma igammac zeta".split()
FUNCTIONS = [f"lax.{name}" for name in ANY] + [
    f"numpy.{name}"
    for name in (
        "add subtract multiply divide maximum minimum power float_power arctan2 equal less logical_and "
        "logical_or logical_xor nextafter"
    ).split()
]


def find(library, name):
    for part in name.split("."):
        library = getattr(library, part)
    return library


def operands(shapes):
    generator = np.random.default_rng(1)
    return [generator.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_have_the_operations_of_those_of_jax(name, shapes):
    if name.startswith("lax.") and len({len(shape) for shape in shapes if shape}) > 1:
        for library in (purax, jax):
            with pytest.raises(TypeError):
                find(library, name)(*operands(shapes))
        return
    found = []
    for library in (purax, jax):
        closed = library.make_jaxpr(find(library, name))(*operands(shapes))
        while len(closed.eqns) == 1 and closed.eqns[0].primitive.name in ("jit", "pjit"):
            closed = closed.eqns[0].params["jaxpr"]
        found.append(sorted(eqn.primitive.name for eqn in closed.eqns))
    ours, theirs = ([name for name in each if name != "convert_element_type"] for each in found)
    assert ours == theirs


@pytest.mark.parametrize("name", ["sub", "div", "max", "pow", "complex"])
@pytest.mark.parametrize("shapes", [SHAPES[0], SHAPES[5]], ids=str)
def test_values_and_derivatives(name, shapes):
    def loss(m):
        f = find(m, f"lax.{name}")
        return lambda x, y: m.numpy.sum(m.numpy.abs(f(x, y)) ** 2)

    x, y = operands(shapes)
    batch = np.stack([x, x + 1], axis=1)
    forms = (
        (loss, x, y),
        (lambda m: m.grad(loss(m), (0, 1)), x, y),
        (lambda m: m.jit(m.grad(loss(m), (0, 1))), x, y),
        (lambda m: m.jacfwd(m.grad(loss(m))), x, y),
        (lambda m: m.vmap(m.grad(loss(m), (0, 1)), (1, None)), batch, y),
        (lambda m: m.vmap(lambda s, y: find(m, f"lax.{name}")(s, y)), np.float32([1, 2]), np.stack([y, y])),
    )
    wanted = jax.jit(lambda: [transform(jax)(*args) for transform, *args in forms]).lower().compile(QUICKLY)()
    for (transform, *args), expected in zip(forms, wanted, strict=True):
        for a, b in zip(purax.tree.leaves(transform(purax)(*args)), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-5)


def test_clamp_and_select_do_not_repeat():
    x, y = operands(SHAPES[0])
    for library in (purax, jax):
        with pytest.raises(TypeError):
            library.lax.clamp(x, y, y)
        with pytest.raises(TypeError):
            library.lax.select(x > 1, x, y)
