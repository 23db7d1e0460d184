"""Networks of stax have the shapes, parameters and results of those of jax, from the same key."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.example_libraries import stax as theirs

import purax as px
from purax.example_libraries import stax as ours

NCHW = ("NCHW", "OIHW", "NCHW")
NETWORKS = {
    "dense": ((5, 3), lambda s: s.serial(s.Dense(4), s.Tanh, s.Dense(2), s.LogSoftmax)),
    "activations": (
        (5, 3),
        lambda s: s.serial(
            s.Relu, s.Exp, s.Softplus, s.Sigmoid, s.Elu, s.LeakyRelu, s.Selu, s.Gelu, s.Softmax
        ),
    ),
    "convolutions": (
        (2, 9, 9, 2),
        lambda s: s.serial(
            s.Conv(4, (3, 3), (2, 2), "SAME"),
            s.BatchNorm(),
            s.Relu,
            s.MaxPool((2, 2), (2, 2)),
            s.Conv(3, (2, 2)),
            s.Flatten,
            s.Dense(2),
        ),
    ),
    "channels first": (
        (2, 3, 6, 5),
        lambda s: s.serial(s.GeneralConv(NCHW, 4, (3, 3)), s.SumPool((2, 2), spec="NCHW")),
    ),
    "transposed": ((2, 4, 5, 2), lambda s: s.ConvTranspose(3, (3, 3), (2, 2), "SAME")),
    "transposed in one dimension": ((2, 4, 2), lambda s: s.Conv1DTranspose(3, (3,), (2,), "VALID")),
    "normalized without a scale": ((4, 3), lambda s: s.BatchNorm(axis=0, scale=False)),
    "normalized without a center": ((4, 3), lambda s: s.BatchNorm(axis=(0,), center=False)),
    "pools": ((1, 6, 6, 2), lambda s: s.serial(s.AvgPool((3, 3), padding="SAME"), s.SumPool((2, 2), (2, 2)))),
    "side by side": (
        (4, 3),
        lambda s: s.serial(
            s.FanOut(3), s.parallel(s.Dense(2), s.Identity, s.serial(s.Dense(2), s.Relu)), s.FanInConcat()
        ),
    ),
    "summed": ((4, 3), lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(3), s.Identity), s.FanInSum)),
    "dropout": ((50, 3), lambda s: s.serial(s.Dense(4), s.Dropout(0.7), s.Relu)),
    "made late": ((4, 3), lambda s: s.shape_dependent(lambda shape: s.Dense(2 * shape[-1]))),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_that_of_jax(name):
    shape, make = NETWORKS[name]
    inputs = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def run(system, module):
        init, apply = make(module)
        out_shape, params = init(system.random.PRNGKey(3), shape)
        result = system.jit(lambda p, x, key: apply(p, x, rng=key))(params, inputs, system.random.PRNGKey(4))
        return tuple(out_shape), system.tree_util.tree_leaves(params), result

    with jax.threefry_partitionable(False):
        wanted_shape, wanted_params, wanted = run(jax, theirs)
    out_shape, params, result = run(px, ours)
    assert out_shape == wanted_shape == result.shape
    assert len(params) == len(wanted_params)
    for mine, expected in zip(params, wanted_params, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)


def test_a_batch_of_unknown_size():
    init, apply = ours.serial(ours.Conv(4, (3, 3)), ours.MaxPool((2, 2)), ours.Flatten, ours.Dense(2))
    shape, params = init(px.random.key(0), (-1, 8, 8, 1))
    assert shape == (-1, 2)
    assert apply(params, np.ones((3, 8, 8, 1), np.float32)).shape == (3, 2)


def test_dropout_outside_of_training_passes_inputs_and_needs_a_key():
    inputs = np.ones(3, np.float32)
    assert ours.Dropout(0.5, mode="test")[1]((), inputs, rng=px.random.key(0)) is inputs
    with pytest.raises(ValueError, match="rng=key"):
        ours.Dropout(0.5)[1]((), inputs)
