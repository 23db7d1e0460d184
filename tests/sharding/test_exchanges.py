"""`ragged_all_to_all`, `psend` and `precv`: against what their documents say, over devices and over a batch axis.

XLA has neither on a CPU, so jax cannot be asked; the oracle is the loop of its document, in NumPy.
"""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.sharding import PartitionSpec as P

N = 8


def exchanged(operand, output, starts, sizes, places):
    """Slice i of element `e` goes to element i // k, one after the other."""
    result = output.copy()
    count = starts.shape[1] // N
    for receiver in range(N):
        for sender in range(N):
            for i in range(receiver * count, (receiver + 1) * count):
                rows = operand[sender, starts[sender, i] : starts[sender, i] + sizes[sender, i]]
                place = places[sender, i]
                result[receiver, place : place + len(rows)] = rows
    return result


def transposed(x):
    """What each element receives: `all_to_all` of numbers, tiled."""
    count = x.shape[1] // N
    return x.reshape(N, N, count).transpose(1, 0, 2).reshape(N, N * count)


def random_case(rng, count, width):
    starts = rng.integers(0, 6, (N, N * count))
    sizes = rng.integers(0, 4, (N, N * count))
    # Each receiver gets its slices one after the other, with gaps of up to one row.
    arriving = transposed(sizes)
    ends = np.cumsum(arriving + rng.integers(0, 2, arriving.shape), axis=1)
    places = transposed(ends - arriving)
    operand = rng.normal(size=(N, 9, *width)).astype(np.float32)
    output = rng.normal(size=(N, int(ends.max()) + 1, *width)).astype(np.float32)
    numbers = [v.astype(np.int32) for v in (starts, sizes, places, transposed(sizes))]
    return operand, output, *numbers


def over_devices(*args):
    mesh = px.make_mesh((N,), ("i",))
    flat = [jnp.asarray(a.reshape(-1, *a.shape[2:])) for a in args]
    run = px.shard_map(
        lambda *parts: px.lax.ragged_all_to_all(*parts, axis_name="i"),
        mesh=mesh, in_specs=P("i"), out_specs=P("i"),
    )  # fmt: skip
    return run, flat


@pytest.mark.parametrize("count, width", [(1, ()), (2, (3,)), (3, (2, 2))])
def test_ragged_exchange(count, width):
    operand, output, starts, sizes, places, received = case = random_case(
        np.random.default_rng(count), count, width
    )
    wanted = exchanged(operand, output, starts, sizes, places)
    run, flat = over_devices(*case)
    np.testing.assert_array_equal(np.asarray(px.jit(run)(*flat)).reshape(wanted.shape), wanted)
    batched = px.vmap(lambda *a: px.lax.ragged_all_to_all(*a, axis_name="i"), axis_name="i")
    np.testing.assert_array_equal(batched(*case), wanted)
    assert received.sum() == sizes.sum()


def test_derivative_of_a_ragged_exchange():
    operand, output, starts, sizes, places, received = case = random_case(np.random.default_rng(0), 2, (2,))
    run, flat = over_devices(*case)
    weights = np.random.default_rng(1).normal(size=flat[1].shape).astype(np.float32)
    loss = lambda x, out: jnp.sum(run(x, out, *flat[2:]) * weights)  # noqa: E731
    of_operand, of_output = px.jit(px.grad(loss, (0, 1)))(*flat[:2])
    # The exchange is linear: its transpose, from the columns of the exchange of unit vectors.
    numbers = np.arange(operand[..., 0].size, dtype=np.float32).reshape(operand.shape[:2])
    sources = exchanged(numbers, np.full(output.shape[:2], -1, np.float32), starts, sizes, places).reshape(-1)
    wanted = np.zeros((numbers.size, 2), np.float32)
    for row, origin in enumerate(sources.astype(int)):
        if origin >= 0:
            wanted[origin] += weights[row]
    np.testing.assert_allclose(of_operand, wanted, atol=1e-6)
    np.testing.assert_array_equal(of_output, np.where((sources < 0)[:, None], weights, 0))


def test_batch_of_ragged_exchanges():
    """`vmap` inside of a named axis: examples are exchanged each by itself."""
    cases = [random_case(np.random.default_rng(seed), 1, ()) for seed in (3, 3)]
    cases[1] = (cases[1][0] * 2, cases[1][1] + 1, *cases[1][2:])
    stacked = [np.stack(parts, axis=1) for parts in zip(*cases, strict=True)]
    one = px.vmap(lambda *a: px.lax.ragged_all_to_all(*a, axis_name="i"))
    found = px.vmap(one, axis_name="i")(*stacked)
    for i, case in enumerate(cases):
        np.testing.assert_array_equal(found[:, i], exchanged(*case[:2], case[2], case[3], case[4]))


def test_of_slices_that_overlap_the_last_stays():
    arrays = [np.array([[1, 2], [3, 4]]), np.zeros((2, 3), int), np.zeros((2, 2), int), np.full((2, 2), 2)]
    batched = px.vmap(lambda *a: px.lax.ragged_all_to_all(*a, axis_name="i"), axis_name="i")
    found = batched(*arrays, np.array([[0, 1], [0, 0]]), np.full((2, 2), 2))
    np.testing.assert_array_equal(found, [[3, 4, 0], [3, 4, 2]])


def test_ragged_exchanges_in_groups():
    groups = [[0, 3], [2, 1]]
    sizes = np.array([[1, 2], [2, 0], [1, 1], [2, 1]])
    arrays = [np.arange(16.0).reshape(4, 4), np.zeros((4, 5)), np.array([[0, 1]] * 4), sizes]
    received = np.array([[1, 2], [1, 0], [1, 2], [2, 1]])  # of the two senders of the group
    offsets = np.array([[0, 0], [1, 1], [0, 0], [2, 3]])
    arrays += [offsets, received]
    exchange = lambda *args, **g: px.vmap(  # noqa: E731
        lambda *a: px.lax.ragged_all_to_all(*a, axis_name="i", **g), axis_name="i"
    )(*args)
    found = exchange(*arrays, axis_index_groups=groups)
    for group in groups:
        np.testing.assert_array_equal(found[np.array(group)], exchange(*[a[group] for a in arrays]))


BAD = {
    "lengths": (dict(send_sizes=np.zeros(3, int)), "must have one length, a multiple of the axis size 2"),
    "floats": (dict(recv_sizes=np.zeros(2)), "recv_sizes must be integers"),
    "shapes": (dict(output=np.zeros((3, 2))), r"differ in the first axis only; got f32\[2\] and f32\[3,2\]"),
    "groups": (dict(axis_index_groups=[[0], [0]]), "must have each of the positions 0 … 1 in one group"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_of_a_ragged_exchange(name):
    changes, message = BAD[name]
    numbers = np.zeros(2, int)
    given = dict(
        operand=np.zeros(2), output=np.zeros(3), input_offsets=numbers, send_sizes=numbers,
        output_offsets=numbers, recv_sizes=numbers,
    ) | changes  # fmt: skip
    groups = given.pop("axis_index_groups", None)
    with pytest.raises((ValueError, NotImplementedError), match=message):
        px.vmap(
            lambda _: px.lax.ragged_all_to_all(**given, axis_name="i", axis_index_groups=groups),
            axis_name="i",
        )(np.zeros(2))


PERM = [(k, (k + 1) % N) for k in range(N - 1)]


def sent_and_received(x):
    token = px.lax.optimization_barrier(px.lax.psend({"x": x}, "i", PERM))
    return px.lax.precv(token, {"x": px.ShapeDtypeStruct(x.shape, x.dtype)}, "i", PERM)["x"]


def test_send_and_receive():
    x = np.arange(16, dtype=np.float32)
    mesh = px.make_mesh((N,), ("i",))
    mapped = px.jit(px.shard_map(sent_and_received, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    wanted = np.concatenate([np.zeros(2, np.float32), x[:-2]])
    np.testing.assert_array_equal(mapped(x), wanted)
    np.testing.assert_array_equal(px.vmap(sent_and_received, axis_name="i")(x.reshape(N, 2)).ravel(), wanted)
    (pullback,) = px.vjp(mapped, x)[1](jnp.asarray(x))
    np.testing.assert_array_equal(pullback, np.concatenate([x[2:], np.zeros(2, np.float32)]))


def test_receiving_what_was_not_sent():
    def received(x, token=None, perm=PERM, shape=()):
        token = px.lax.psend(x, "i", PERM) if token is None else token
        return px.lax.precv(token, px.ShapeDtypeStruct(shape, x.dtype), "i", perm)

    x = np.arange(8.0, dtype=np.float32)
    for options, error, message in (
        ({"token": px.lax.create_token()}, TypeError, "ppermute"),
        ({"perm": [(0, 1)]}, ValueError, r"perm=\[\(0, 1\)\] does not fit its psend"),
        ({"shape": (2,)}, ValueError, r"what was sent is f32\[\]"),
    ):
        with pytest.raises(error, match=message):
            px.vmap(lambda x, options=options: received(x, **options), axis_name="i")(x)


def test_processes():
    assert px.process_indices() == [0] == list(range(px.process_count()))
