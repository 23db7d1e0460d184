"""Arguments that never end are errors, in functions that loop over what they are given."""

from __future__ import annotations

import array
import collections

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core import limits
from purax.experimental import checkify, mesh_utils, sparse


class Endless:
    """A sequence whose items never end."""

    def __getitem__(self, index):
        return 1


class Longer(Endless):
    """One that says how long it is, and goes on beyond that."""

    def __len__(self):
        return 3


CALLS = {
    "make_mesh": lambda x: px.make_mesh(x, ("a",)),
    "Mesh": lambda x: px.sharding.Mesh(np.array(px.devices()[:1]), x),
    "create_device_mesh": mesh_utils.create_device_mesh,
    "devices of create_device_mesh": lambda x: mesh_utils.create_device_mesh((1,), x),
    "create_hybrid_device_mesh": lambda x: mesh_utils.create_hybrid_device_mesh((1,), x),
    "sparse.empty": sparse.empty,
    "random_bcoo": lambda x: sparse.random_bcoo(px.random.key(0), x),
    "checkify": lambda x: checkify.checkify(lambda y: y, errors=x),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [Endless, Longer])
def test_an_argument_that_never_ends_is_refused(name, kind):
    with pytest.raises(ValueError, match="may never end"):
        CALLS[name](kind())


def test_a_sequence_that_is_longer_than_it_says_is_refused():
    for call in (limits.numpy_value, lambda x: jnp.kaiser(2, x)):
        with pytest.raises(ValueError, match="more than 3 items"):
            call(Longer())


VALUES = [[1, 2], (1.0,), 3, np.float32(2), np.ones((2, 2)), range(3), "text", b"text", memoryview(b"ab"), {1: 2}]


@pytest.mark.parametrize(
    "value", [*VALUES, array.array("f", [1, 2]), collections.deque([1, 2])], ids=lambda x: type(x).__name__
)
def test_values_are_as_numpy_has_them(value):
    np.testing.assert_array_equal(limits.numpy_value(value), np.asarray(value))
