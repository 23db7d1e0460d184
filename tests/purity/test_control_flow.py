"""Control flow on traced values: each function of the table equals its eager self, under `jit` and `vmap(jit)`."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from tests.purity.control_flow_table import CASES


def check_same(got, wanted):
    got_leaves, got_tree = px.tree_util.tree_flatten(got)
    leaves, tree = px.tree_util.tree_flatten(wanted)
    assert got_tree == tree
    for x, y in zip(got_leaves, leaves, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-6, atol=1e-6)


def arrays(arguments):
    return [jnp.asarray(x) for x in arguments]


def test_the_table_is_large():
    assert len(CASES) >= 80
    assert len({function.__name__ for function, _ in CASES}) == len(CASES)


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
