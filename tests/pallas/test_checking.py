"""The checking mode finds indices out of bounds, reads of uninitialized memory and races, and names the line."""

from __future__ import annotations

import numpy as np
import pytest

import purax
from purax import numpy as jnp
from purax import pallas as pl
from purax.pallas import tpu, triton
from tests.pallas.kernels import CASES, purax_namespace

F32 = jnp.float32
S = purax.ShapeDtypeStruct


def sound(case) -> bool:
    """Whether a kernel reads and writes only what it may, and runs on concrete arrays."""
    return not any(
        part in case.name
        for part in ("outside", "vmap", "derivative", "backward", "masks", "atomic", "padding", "diagonal")
    )


@pytest.mark.parametrize("case", [case for case in CASES if sound(case)], ids=lambda case: case.name)
def test_sound_kernels_pass_with_the_same_results(case):
    function = case.build(purax_namespace())
    args = [jnp.asarray(x) for x in case.args]
    wanted = purax.tree.leaves(function(*args))
    with pl.checking():
        results = purax.tree.leaves(function(*args))
    for got, want in zip(results, wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64), rtol=2e-2, atol=1e-5
        )


def test_an_index_out_of_bounds_at_run_time():
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(at_ref[0], 2)]

    call = pl.pallas_call(kernel, S((2,), F32))
    args = jnp.array([3]), jnp.ones(4)
    with pl.checking(), pytest.raises(IndexError, match=r"x_ref: .*out of bounds for dimension 0") as caught:
        call(*args)
    assert "o_ref[...] = x_ref[pl.ds(at_ref[0], 2)]" in str(caught.value)


def test_a_write_in_a_loop_out_of_bounds():
    def kernel(o_ref):
        @pl.loop(0, 5)
        def _(i):
            o_ref[i] = 1.0

    with (
        pl.checking(),
        pytest.raises(IndexError, match="o_ref: index 4 is out of bounds for dimension 0 of size 4"),
    ):
        pl.pallas_call(kernel, S((4,), F32))()


def test_masked_elements_may_be_out_of_bounds():
    def kernel(x_ref, o_ref):
        mask = jnp.arange(4) < 3
        o_ref[...] = triton.load(x_ref.at[pl.ds(1, 4)], mask=mask, other=0.0)

    with pl.checking():
        result = pl.pallas_call(kernel, S((4,), F32))(jnp.arange(4.0))
    np.testing.assert_array_equal(result, [1, 2, 3, 0])

    def unmasked(x_ref, o_ref):
        o_ref[...] = triton.load(x_ref.at[jnp.arange(4) + 1], mask=jnp.ones(4, bool))

    with pl.checking(), pytest.raises(IndexError, match="index 4 is out of bounds"):
        pl.pallas_call(unmasked, S((4,), F32))(jnp.arange(4.0))


def test_a_read_of_uninitialized_scratch():
    def kernel(x_ref, o_ref, scratch_ref):
        scratch_ref[:2] = x_ref[:2]
        o_ref[...] = scratch_ref[...]

    call = pl.pallas_call(kernel, S((4,), F32), scratch_shapes=[tpu.VMEM((4,), F32)])
    with (
        pl.checking(),
        pytest.raises(pl.UninitializedRead, match="2 of 4 elements are uninitialized, the first at"),
    ):
        call(jnp.ones(4))


def test_a_read_of_scoped_memory_before_it_is_written():
    def kernel(o_ref):
        pl.run_scoped(lambda ref: o_ref.__setitem__(..., ref[...]), pl.ANY((4,), F32))

    with pl.checking(), pytest.raises(pl.UninitializedRead, match="scoped memory is read"):
        pl.pallas_call(kernel, S((4,), F32))()


def test_an_output_that_is_an_input_is_initialized():
    def kernel(x_ref, o_ref):
        o_ref[...] += x_ref[...]

    call = pl.pallas_call(kernel, S((4,), F32), input_output_aliases={0: 0})
    with pl.checking():
        np.testing.assert_array_equal(call(jnp.ones(4)), 2 * np.ones(4))


def _sums(**params):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(1) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        S((4,), F32),
        grid=(2, 3),
        in_specs=[pl.BlockSpec((None, 2), lambda i, j: (j, i))],
        out_specs=pl.BlockSpec((2,), lambda i, j: i),
        **params,
    )


def test_races_along_axes_that_are_parallel():
    x = jnp.ones((3, 4))
    with pl.checking():
        np.testing.assert_array_equal(_sums()(x), 3 * np.ones(4))
    with pl.checking(parallel=(0,)):
        np.testing.assert_array_equal(_sums()(x), 3 * np.ones(4))
    with (
        pl.checking(parallel=True),
        pytest.raises(pl.GridRace, match=r"steps \(0, 0\) and \(0, 1\)") as caught,
    ):
        _sums()(x)
    assert "o_ref[...] += x_ref[...]" in str(caught.value)


@pytest.mark.parametrize("semantics", [("parallel", "arbitrary"), ("parallel", "parallel")])
def test_dimension_semantics_say_what_is_parallel(semantics):
    call = _sums(
        compiler_params=tpu.CompilerParams(dimension_semantics=semantics),
        interpret=tpu.InterpretParams(detect_races=True),
    )
    if semantics[1] == "arbitrary":
        np.testing.assert_array_equal(call(jnp.ones((3, 4))), 3 * np.ones(4))
    else:
        with pytest.raises(pl.GridRace):
            call(jnp.ones((3, 4)))


def test_a_race_between_a_read_and_a_later_write():
    def kernel(x_ref, o_ref):
        i = pl.program_id(0)

        @pl.when(i == 0)
        def _():
            o_ref[0] = x_ref[0] + o_ref[3]

        @pl.when(i == 1)
        def _():
            o_ref[3] = x_ref[1]

    call = pl.pallas_call(kernel, S((4,), F32), grid=2, input_output_aliases={0: 0})
    with pl.checking(parallel=True), pytest.raises(pl.GridRace, match="the former read it"):
        call(jnp.ones(4))


def test_a_block_outside_of_the_array():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(
        kernel,
        S((2,), F32),
        grid=1,
        in_specs=[pl.BlockSpec((2,), lambda i: 5)],
        out_specs=pl.BlockSpec((2,), lambda i: 0),
    )
    with pl.checking(), pytest.raises(IndexError, match=r"index map for args\[0\] returns 5 for dimension 0"):
        call(jnp.ones(4))


def test_traced_arguments_are_refused():
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(kernel, S((4,), F32))
    with pl.checking(), pytest.raises(TypeError, match="call it outside of `jit`"):
        purax.jit(call)(jnp.ones(4))
