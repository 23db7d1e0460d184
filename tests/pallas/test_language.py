"""What jax's interpret mode does not have, or has otherwise: against NumPy and against formulas."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect

import numpy as np
import pytest

import purax
from purax import lax
from purax import numpy as jnp
from purax import pallas as pl
from purax.pallas import mosaic_gpu, tpu, triton
from purax.testing.check_grads import check_grads

S = purax.ShapeDtypeStruct
F32 = jnp.float32


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


X, BINS = floats(40), np.random.default_rng(1).integers(0, 8, 40).astype(np.int32)


@pytest.mark.parametrize(
    "operation, combine, start",
    [
        (triton.atomic_add, np.add, 0.0),
        (triton.atomic_max, np.maximum, -9.0),
        (triton.atomic_min, np.minimum, 9.0),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_atomics_at_positions_that_repeat(operation, combine, start, masked):
    def kernel(x_ref, bin_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.full((8,), start, F32)

        operation(o_ref, (bin_ref[...],), x_ref[...], mask=x_ref[...] > 0 if masked else None)

    block = pl.BlockSpec((10,), lambda i: i)
    call = pl.pallas_call(
        kernel,
        S((8,), F32),
        grid=(4,),
        in_specs=[block, block],
        out_specs=pl.BlockSpec((8,), lambda i: 0),
    )
    want = np.full(8, start, np.float32)
    chosen = X > 0 if masked else np.ones(40, bool)
    combine.at(want, BINS[chosen], X[chosen])
    np.testing.assert_allclose(call(X, BINS), want, rtol=1e-5)


@pytest.mark.parametrize(
    "operation, combine",
    [
        (triton.atomic_and, np.bitwise_and),
        (triton.atomic_or, np.bitwise_or),
        (triton.atomic_xor, np.bitwise_xor),
    ],
)
def test_bitwise_atomics(operation, combine):
    def kernel(x_ref, bin_ref, o_ref):
        o_ref[...] = jnp.full((8,), 21, jnp.int32)
        operation(o_ref, (bin_ref[...],), x_ref[...])

    values = np.arange(40, dtype=np.int32)
    want = np.full(8, 21, np.int32)
    combine.at(want, BINS, values)
    np.testing.assert_array_equal(pl.pallas_call(kernel, S((8,), jnp.int32))(values, BINS), want)


def test_atomics_return_what_was_there():
    def kernel(x_ref, o_ref, before_ref):
        o_ref[...] = x_ref[...]
        before_ref[...] = triton.atomic_xchg(o_ref, (pl.ds(1, 2),), jnp.array([7.0, 8.0]) + 0 * x_ref[:2])
        triton.atomic_cas(o_ref.at[0], x_ref[0], 5.0)
        triton.atomic_cas(o_ref.at[3], x_ref[0], 5.0)

    x = jnp.arange(4.0)
    o, before = pl.pallas_call(kernel, (S((4,), F32), S((2,), F32)))(x)
    np.testing.assert_array_equal(o, [5, 7, 8, 3])
    np.testing.assert_array_equal(before, [1, 2])


def square_kernel(x_ref, o_ref):
    o_ref[...] = jnp.sin(x_ref[...]) * x_ref[...]


ROWS = pl.BlockSpec((2, 3), lambda i: (i, 0))


def squares(x):
    return pl.pallas_call(square_kernel, S((4, 3), x.dtype), grid=(2,), in_specs=[ROWS], out_specs=ROWS)(x)


def product(x, y):
    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        acc_ref[...] += x_ref[...] @ y_ref[...]

        @pl.when(pl.program_id(1) == 2)
        def _():
            o_ref[...] = acc_ref[...]

    return pl.pallas_call(
        kernel,
        S((4, 5), x.dtype),
        grid=(2, 3),
        in_specs=[pl.BlockSpec((2, 2), lambda i, k: (i, k)), pl.BlockSpec((2, 5), lambda i, k: (k, 0))],
        out_specs=pl.BlockSpec((2, 5), lambda i, k: (i, 0)),
        scratch_shapes=[tpu.VMEM((2, 5), x.dtype)],
    )(x, y)


def running_total(x):
    def kernel(x_ref, o_ref, carry_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            carry_ref[0] = 0.0

        def step(i, total):
            total = 0.5 * total + jnp.tanh(x_ref[i])
            o_ref[i] = total
            return total

        carry_ref[0] = lax.fori_loop(0, 4, step, carry_ref[0])

    block = pl.BlockSpec((4,), lambda i: i)
    return pl.pallas_call(
        kernel,
        S(x.shape, x.dtype),
        grid=(x.shape[0] // 4,),
        in_specs=[block],
        out_specs=block,
        scratch_shapes=[tpu.SMEM((1,), x.dtype)],
    )(x)


@pytest.mark.parametrize(
    "function, args",
    [
        (squares, (floats(4, 3),)),
        (product, (floats(4, 6), floats(6, 5, seed=1))),
        (running_total, (floats(12),)),
    ],
)
def test_derivatives(function, args):
    check_grads(function, tuple(jnp.asarray(x) for x in args), order=2, modes=("fwd", "rev"))


def test_a_derivative_through_a_kernel_that_visits_rows_at_random():
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = x_ref[at_ref[...], :] ** 2

    def take(at, x):
        return pl.pallas_call(kernel, S((5, 3), F32))(at, x)

    at, x = jnp.array([0, 2, 2, 1, 0]), jnp.asarray(floats(4, 3))
    got = purax.grad(lambda x: take(at, x).sum())(x)
    np.testing.assert_allclose(got, purax.grad(lambda x: (x[at] ** 2).sum())(x), rtol=1e-6)


@pytest.mark.parametrize("axes", [(0, None), (1, 0), (None, 2), (2, 1)])
def test_vmap(axes):
    x, y = floats(4, 6), floats(6, 5, seed=1)
    args = []
    for value, axis in zip((x, y), axes, strict=True):
        args.append(value if axis is None else np.stack([value, 2 * value, -value], axis))
    got = purax.vmap(product, in_axes=axes)(*args)
    want = purax.vmap(jnp.matmul, in_axes=axes)(*args)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_vmap_of_prefetched_inputs():
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...] + at_ref[0]

    call = pl.pallas_call(
        kernel,
        S((2, 4), F32),
        grid_spec=tpu.PrefetchScalarGridSpec(
            1,
            grid=(2,),
            in_specs=[pl.BlockSpec((1, 4), lambda i, at: (at[i], 0))],
            out_specs=pl.BlockSpec((1, 4), lambda i, at: (i, 0)),
        ),
    )
    at, x = np.array([[0, 2], [3, 1]], np.int32), floats(4, 4)
    want = np.stack([x[row] + row[0] for row in at])
    np.testing.assert_allclose(purax.vmap(call, in_axes=(0, None))(at, x), want, rtol=1e-6)


def test_64_bits():
    with purax.enable_x64(True):

        def kernel(x_ref, i_ref, o_ref):
            o_ref[...] = x_ref[...] / 3 + i_ref[pl.program_id(0)]

        block = pl.BlockSpec((2,), lambda i: i)
        call = pl.pallas_call(
            kernel,
            S((4,), jnp.float64),
            grid=(2,),
            in_specs=[block, pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=block,
        )
        x, i = jnp.arange(4.0), jnp.array([2**40, 1])
        assert x.dtype == np.float64 and i.dtype == np.int64
        result = call(x, i)
        assert result.dtype == np.float64
        np.testing.assert_allclose(result, np.arange(4) / 3 + np.repeat([2**40, 1], 2), rtol=1e-15)


def test_views_of_memory():
    def kernel(x_ref, o_ref, bits_ref):
        seen = x_ref.reshape(3, 4).transpose(1, 0)
        o_ref[...] = jnp.zeros((4, 3), F32)
        o_ref.at[1:3][...] = seen.at[1:3][...]
        o_ref.T[0, :] = x_ref[:4]
        bits_ref[...] = jnp.zeros_like(bits_ref)
        bits_ref.bitcast(F32)[...] = x_ref[...]

    x = jnp.arange(12.0)
    o, bits = pl.pallas_call(kernel, (S((4, 3), F32), S((12,), jnp.uint32)))(x)
    want = np.zeros((4, 3), np.float32)
    want[1:3] = np.arange(12.0).reshape(3, 4).T[1:3]
    want[:, 0] = np.arange(4)
    np.testing.assert_array_equal(o, want)
    np.testing.assert_array_equal(bits, np.arange(12, dtype=np.float32).view(np.uint32))


def test_swap_and_addupdate():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]
        before = purax.ref.swap(o_ref, pl.ds(0, 2), x_ref[2:4])
        purax.ref.addupdate(o_ref, pl.ds(2, 2), before)
        purax.ref.addupdate(o_ref, 0, 10.0)

    np.testing.assert_array_equal(pl.pallas_call(kernel, S((4,), F32))(jnp.arange(4.0)), [12, 3, 2, 4])


def test_a_choice_of_references():
    def kernel(i_ref, x_ref, y_ref, o_ref):
        chosen = pl.select_ref(i_ref[0], x_ref.at[...], y_ref)
        tpu.async_copy(chosen, o_ref, None).wait()

    call = pl.pallas_call(kernel, S((3,), F32))
    for i in (0, 1):
        np.testing.assert_array_equal(call(jnp.array([i]), jnp.zeros(3), jnp.ones(3)), np.full(3, i))


def test_a_pipeline_inside_of_a_kernel():
    def add(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    def kernel(x_ref, y_ref, o_ref):
        block = pl.BlockSpec((2, 4), lambda i, j: (i, j))
        tpu.emit_pipeline(add, grid=(2, 3), in_specs=[block, block], out_specs=block)(x_ref, y_ref, o_ref)

    whole = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(kernel, S((4, 12), F32), in_specs=[whole, whole], out_specs=whole)
    x, y = floats(4, 12), floats(4, 12, seed=1)
    np.testing.assert_array_equal(call(x, y), x + y)


def test_semaphores_count():
    def kernel(o_ref, semaphore):
        pl.semaphore_signal(semaphore, 3)
        pl.semaphore_wait(semaphore, 1)
        o_ref[0] = pl.semaphore_read(semaphore)

    call = pl.pallas_call(kernel, S((1,), jnp.int32), scratch_shapes=[tpu.SemaphoreType.REGULAR])
    assert int(call()[0]) == 2
    with pytest.raises(NotImplementedError, match="do not reach other devices"):
        pl.pallas_call(
            lambda o_ref, s: pl.semaphore_signal(s, device_id=1),
            S((1,), jnp.int32),
            scratch_shapes=[tpu.SemaphoreType.REGULAR],
        )()


def test_kernels_on_references():
    mesh = tpu.create_tensorcore_mesh("core")
    ref = purax.new_ref(jnp.arange(3.0))

    @pl.kernel(out_type=S((3,), F32), mesh=mesh, scratch_types=dict(buffer=tpu.VMEM((3,), F32)))
    def double(x_ref, o_ref, buffer):
        tpu.sync_copy(x_ref, buffer)
        o_ref[...] = buffer[...] * 2
        x_ref[...] = buffer[...] + 1

    np.testing.assert_array_equal(double(ref), [0, 2, 4])
    np.testing.assert_array_equal(ref[...], [1, 2, 3])

    @pl.core_map(mesh)
    def _():
        ref[...] = ref[...] * 10

    np.testing.assert_array_equal(ref[...], [10, 20, 30])

    total = mosaic_gpu.kernel(
        lambda x_ref, o_ref: o_ref.at[pl.program_id(0)].set(x_ref[pl.program_id(0)] * 3),
        S((3,), F32),
        grid=(3,),
    )
    np.testing.assert_array_equal(total(jnp.arange(3.0)), [0, 3, 6])


def test_run_state():
    def body(refs):
        x_ref, y_ref = refs
        x_ref[...] = x_ref[...] + y_ref[...]

    x, y = purax.jit(pl.run_state(body))((jnp.ones(2), jnp.arange(2.0)))
    np.testing.assert_array_equal(x, [1, 2])
    np.testing.assert_array_equal(y, [0, 1])


def test_checks_inside_of_kernels():
    def kernel(x_ref, o_ref):
        pl.debug_check(x_ref[0] > 0, "the first element must be positive")
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(kernel, S((2,), F32))
    np.testing.assert_array_equal(call(-jnp.ones(2)), [-1, -1])
    with pl.enable_debug_checks(True):
        np.testing.assert_array_equal(call(jnp.ones(2)), [1, 1])
        with pytest.raises(Exception, match="the first element must be positive"):
            call(-jnp.ones(2))
            purax.effects_barrier()


def test_prints_of_each_step_in_their_order(capfd):
    def kernel(x_ref, o_ref):
        pl.debug_print("step {} has {}", pl.program_id(0), x_ref[0])
        o_ref[...] = x_ref[...]

    one = pl.BlockSpec((1,), lambda i: i)
    pl.pallas_call(kernel, S((3,), F32), grid=(3,), in_specs=[one], out_specs=one)(jnp.arange(3.0))
    purax.effects_barrier()
    assert capfd.readouterr().out.splitlines() == [f"step {i} has {i}.0" for i in range(3)]


def test_steps_that_are_independent_run_at_once():
    """A kernel whose steps write different blocks becomes a program without loops."""
    loops = [eqn for eqn in _program(squares, floats(4, 3)).eqns if eqn.primitive.name in ("scan", "while")]
    assert not loops
    (loop,) = [
        eqn for eqn in _program(product, floats(4, 6), floats(6, 5)).eqns if eqn.primitive.name == "scan"
    ]
    assert loop.params["length"] == 3


def _program(function, *args):
    (eqn,) = purax.make_jaxpr(function)(*args).eqns
    return eqn.params["jaxpr"]


def test_masked_reads_of_tpus_and_text_of_programs():
    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)
        mask = jnp.arange(4) < 2
        tpu.store(o_ref, tpu.load(x_ref, mask=mask), mask=mask)

    call = pl.pallas_call(kernel, S((4,), F32))
    np.testing.assert_array_equal(call(jnp.ones(4)), [1, 1, 0, 0])
    assert "triton" in pl.lower_as_mlir(call, jnp.ones(4), platforms=["cuda"])
    assert "triton" not in pl.lower_as_mlir(call, jnp.ones(4))


@pytest.mark.filterwarnings("ignore:jax.experimental.pallas:DeprecationWarning")
def test_names_and_parameters_are_those_of_jax():
    """Of the modules that programs import; `load` and `store` of earlier versions are there besides."""
    jax_pallas = pytest.importorskip("jax.experimental.pallas")
    is_known = importlib.metadata.version("jax") == "0.10.2"  # the names are this one's
    for module in ("", "triton", "tpu", "mosaic_gpu") if is_known else ():
        name = f".{module}" if module else ""
        theirs = importlib.import_module(f"jax.experimental.pallas{name}")
        ours = importlib.import_module(f"purax.pallas{name}")
        missing = {
            n
            for n in dir(theirs)
            if n[0] != "_" and not inspect.ismodule(getattr(theirs, n)) and not hasattr(ours, n)
        }
        assert missing <= {"semaphore"}
    for name in (
        "pallas_call",
        "kernel",
        "core_map",
        "BlockSpec",
        "GridSpec",
        "ds",
        "loop",
        "run_scoped",
        "Element",
    ):
        parameters = [list(inspect.signature(getattr(m, name)).parameters) for m in (jax_pallas, pl)]
        assert parameters[0] == parameters[1], name
