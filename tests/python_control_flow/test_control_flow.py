"""Control flow on traced values: each function of the tables equals its eager self.

That is tried under `jit` and `vmap(jit)`, and for the second table under `jvp` too.
"""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from tests.python_control_flow import control_flow_idioms, control_flow_table

CASES = [*control_flow_table.CASES, *control_flow_idioms.CASES]


def check_same(got, wanted):
    got_leaves, got_tree = px.tree_util.tree_flatten(got)
    leaves, tree = px.tree_util.tree_flatten(wanted)
    assert got_tree == tree
    for x, y in zip(got_leaves, leaves, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6, atol=1e-6)


def arrays(arguments):
    return [jnp.asarray(x) for x in arguments]


def test_the_table_is_large():
    assert len(CASES) >= 170
    for table in (control_flow_table.CASES, control_flow_idioms.CASES):
        assert len({function.__name__ for function, _ in table}) == len(table)


@pytest.mark.parametrize(("function", "inputs"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_compiled_functions_equal_their_eager_selves(function, inputs):
    compiled = px.jit(function)
    results = [function(*arrays(arguments)) for arguments in inputs]
    for arguments, wanted in zip(inputs, results, strict=True):
        check_same(compiled(*arrays(arguments)), wanted)
    batch = [jnp.stack([jnp.asarray(x) for x in column]) for column in zip(*inputs, strict=True)]
    together = px.vmap(compiled)(*batch)
    for i, wanted in enumerate(results):
        check_same(px.tree_util.tree_map(lambda x, i=i: x[i], together), wanted)


SMOOTH = [
    (function, inputs)
    for function, inputs in control_flow_idioms.CASES
    if all(jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating) for x in inputs[0])
]


@pytest.mark.parametrize(("function", "inputs"), SMOOTH, ids=[function.__name__ for function, _ in SMOOTH])
def test_forward_derivatives_equal_eager_ones(function, inputs):
    given = arrays(inputs[0])
    tangents = [jnp.ones_like(x) for x in given]
    compiled, eager = (px.jvp(f, given, tangents) for f in (px.jit(function), function))
    check_same(compiled[0], eager[0])
    for x, y in zip(px.tree.leaves(compiled[1]), px.tree.leaves(eager[1]), strict=True):
        if np.asarray(x).dtype.kind == "f" and np.asarray(y).dtype.kind == "f":  # not those of integers
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
