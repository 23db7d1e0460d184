"""Parameters that are easily taken and ignored: what each of them changes, or how it is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.experimental import colocated_python, io_callback, sparse
from purax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

X = jnp.array([3.0, 1.0, 4.0, 1.0, 5.0])


def twice(x):
    with px.named_scope("part"):
        y = jnp.sin(x)
    return y * 2


def test_programs_with_the_users_lines():
    lowered = px.jit(twice).lower(X)
    plain, detailed = lowered.as_text(), lowered.as_text(debug_info=True)
    line = twice.__code__.co_firstlineno + 2
    places = dict(re.findall(r'^(#\w+) = loc\((.*)\)$', detailed, re.MULTILINE))
    named = [text for text in places.values() if "(#" in text]
    of_name = {text.split('"')[1]: places[text.rpartition("(")[2].rstrip(")")] for text in named}
    assert of_name["part/sin"] == f'"{__file__}":{line}:0' and of_name["mul"] == f'"{__file__}":{line + 1}:0'
    assert __file__ not in plain
    assert "HloModule" in lowered.as_text("hlo", debug_info=True)
    program = px.make_jaxpr(twice)(X)
    assert f"{__file__}:{line} (twice)" in program.pretty_print(source_info=True)
    assert "# [part]" in program.pretty_print(name_stack=True)
    assert "f32[5]" not in program.pretty_print(print_shapes=False)
    with pytest.raises(TypeError):
        program.pretty_print(no_such_option=True)


def test_scan_unrolls_lengths_that_are_no_multiple():
    def f(xs, unroll, reverse=False):
        return px.lax.scan(lambda c, x: (c * 0.9 + x, c), 0.0, xs, unroll=unroll, reverse=reverse)

    def steps(unroll):
        lines = px.jit(f, static_argnums=1).lower(X, unroll).as_text().splitlines()
        return sum("multiply" in line and "f32" in line for line in lines)

    # of a turn, and those that fill none
    assert [steps(unroll) for unroll in (1, 2, 3, 5, 7, True)] == [1, 2 + 1, 3 + 2, 5, 5, 5]
    for unroll in range(8):
        for reverse in (False, True):
            got = px.jit(f, static_argnums=(1, 2))(X, unroll, reverse)
            for y, expected in zip(got, f(X, 1, reverse), strict=True):
                np.testing.assert_allclose(y, expected, 1e-6)


def test_approximate_extrema():
    for function, order in ((px.lax.approx_max_k, -1), (px.lax.approx_min_k, 1)):
        values, indices = function(X, 2, aggregate_to_topk=False)
        np.testing.assert_array_equal(values, np.sort(X)[::order])
        np.testing.assert_array_equal(X[indices], values)
        assert function(X, 2, reduction_input_size_override=100)[0].shape == (2,)
        with pytest.raises(ValueError, match="reduction_input_size_override must be -1 or at least"):
            function(X, 2, reduction_input_size_override=3)


NUMBERS = px.lax.GatherDimensionNumbers((1,), (0,), (0,))


@pytest.mark.parametrize("mode", ["clip", "fill", "drop", "promise_in_bounds"])
def test_windows_of_sparse_arrays(mode):
    m = sparse.BCOO.fromdense(jnp.arange(1.0, 13).reshape(4, 3))
    starts = jnp.array([[1], [9], [3]] if mode == "promise_in_bounds" else [[1], [9], [-1]])
    arguments = dict(dimension_numbers=NUMBERS, slice_sizes=(1, 3), mode=mode, fill_value=0)
    expected = px.lax.gather(m.todense(), starts, **arguments)
    for run in (lambda f: f, px.jit):
        got = run(lambda starts: sparse.bcoo_gather(m, starts, **arguments).todense())(starts)
        np.testing.assert_array_equal(got, expected)


def test_sparse_arrays_refuse_what_is_not_sparse():
    m = sparse.BCOO.fromdense(jnp.arange(1.0, 13).reshape(4, 3))
    take = sparse.sparsify(lambda m, i: jnp.take(m, i, axis=0))
    np.testing.assert_array_equal(take(m, jnp.array([1, 3])).todense(), m.todense()[jnp.array([1, 3])])
    with pytest.raises(NotImplementedError, match="mode='fill' with fill_value=None"):
        take(m, jnp.array([1, 9]))
    with pytest.raises(ValueError, match="wrap"):
        sparse.bcoo_gather(m, jnp.array([[1]]), NUMBERS, (1, 3), mode="wrap")
    with pytest.raises(NotImplementedError, match="sum: `out` is not supported"):
        m.sum(out=jnp.zeros(()))
    for call in (
        lambda: sparse.bcoo_reshape(m, new_sizes=(3, 4), sharding=1),
        lambda: sparse.bcoo_broadcast_in_dim(m, shape=(2, 4, 3), broadcast_dimensions=(1, 2), sharding=1),
        lambda: sparse.bcoo_dot_general(m, m.T, dimension_numbers=(([1], [0]), ([], [])), out_sharding=1),
    ):
        with pytest.raises(NotImplementedError, match="sharding` is not supported for sparse arrays"):
            call()


def test_offloading_on_a_cpu_is_keeping():
    policy = px.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    f = lambda x: jnp.sin(x @ x).sum()  # noqa: E731
    x = jnp.ones((3, 3)) / 4
    kept = px.checkpoint(f, policy=px.checkpoint_policies.dots_with_no_batch_dims_saveable)
    offloaded = px.checkpoint(f, policy=policy)
    np.testing.assert_array_equal(px.grad(offloaded)(x), px.grad(f)(x))
    assert str(px.make_jaxpr(px.grad(offloaded))(x)).count("dot_general") == str(
        px.make_jaxpr(px.grad(kept))(x)
    ).count("dot_general")
    assert policy == px.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    assert policy != px.checkpoint_policies.offload_dot_with_no_batch_dims("device", "device")
    with pytest.raises(ValueError, match="a memory kind is one of"):
        px.checkpoint_policies.offload_dot_with_no_batch_dims("device", "disk")


def test_offloaded_values_wait_in_the_memory_of_the_host():
    policy = px.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["kept"],
        names_which_can_be_offloaded=["away"],
        offload_src="device",
        offload_dst="pinned_host",
    )

    def f(x):
        x = px.ad_checkpoint.checkpoint_name(jnp.sin(x @ x), "away")
        return px.ad_checkpoint.checkpoint_name(jnp.sin(x @ x), "kept").sum()

    derivative = px.jit(px.grad(px.checkpoint(f, policy=policy)))
    x = jnp.ones((3, 3)) / 4
    np.testing.assert_allclose(derivative(x), px.grad(f)(x), rtol=1e-6)
    program = str(px.make_jaxpr(derivative)(x))
    assert program.count("to_memory[space=<host>]") == program.count("to_memory[space=<device>]") == 1
    text = derivative.trace(x).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count('_xla_buffer_placement = "pinned_host"') == 1
    assert text.count('_xla_buffer_placement = "device"') == 1


def test_parts_of_values_are_shown_in_a_shard_map(capsys):
    mesh = Mesh(np.array(px.devices()[:2]), ("i",))
    x = px.device_put(np.arange(4.0, dtype=np.float32), NamedSharding(mesh, PartitionSpec("i")))
    for show in (px.debug.print, px.debug.log):
        show("{}", X[0], partitioned=True)
        with pytest.raises(
            NotImplementedError, match=r"partitioned=True is not supported(.|\n)*test_parameter_eff"
        ):
            px.jit(lambda x, show=show: show("{}", x * 2, partitioned=True) or x)(x)
    px.effects_barrier()
    capsys.readouterr()
    rows = PartitionSpec("i")
    f = lambda x: px.debug.print("{}", x, partitioned=True) or x  # noqa: E731
    px.jit(px.shard_map(f, mesh=mesh, in_specs=rows, out_specs=rows))(x)
    px.effects_barrier()
    assert sorted(capsys.readouterr().out.split("\n")) == ["", "[0. 1.]", "[2. 3.]"]


def test_where_callbacks_run():
    here = SingleDeviceSharding(px.devices()[0])
    assert px.pure_callback(lambda x: x, X, X, sharding=here).tolist() == X.tolist()
    mesh = NamedSharding(Mesh(np.array(px.devices()), ("i",)), PartitionSpec())
    for call in (px.pure_callback, io_callback):
        with pytest.raises(NotImplementedError, match="takes a SingleDeviceSharding"):
            call(lambda x: x, X, X, sharding=mesh)
    with pytest.raises(NotImplementedError, match="in_specs and out_specs_fn"):
        colocated_python.colocated_python(lambda x: x).specialize(in_specs=(1,))


def test_what_jax_refuses_too():
    for call in (px.vjp, px.linear_transpose):
        call(lambda x: x * 2, X, reduce_axes=())
        with pytest.raises(NotImplementedError, match="reduce_axes"):
            call(lambda x: x * 2, X, reduce_axes=("i",))
    with pytest.raises(TypeError, match="linear"):
        px.lax.cond(True, lambda x: x, lambda x: x, X, linear=(True,))
    with pytest.raises(NotImplementedError, match="memory_space='a' is not supported"):
        px.new_ref(X, memory_space="a")
    with pytest.raises(NotImplementedError, match="memory_space='a' is not supported"):
        px.empty_ref(X, memory_space="a")
    with pytest.raises(ValueError, match="method must be"):
        px.scipy.linalg.expm_frechet(jnp.eye(2), jnp.eye(2), method="other")
    with pytest.raises(BufferError, match="device_put"):
        X.__dlpack__(dl_device=(2, 0))
    np.testing.assert_array_equal(np.from_dlpack(X), X)
