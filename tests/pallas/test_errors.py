"""Bad kernels and specs raise errors that name the kernel's line and say what to write instead."""

from __future__ import annotations

import inspect

import pytest

import purax
from purax import numpy as jnp
from purax import pallas as pl

S = purax.ShapeDtypeStruct
OUT = S((8,), jnp.float32)
BLOCK = pl.BlockSpec((4,), lambda i: i)


def copy_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


COPY = f"copy_kernel at {__file__}:{inspect.getsourcelines(copy_kernel)[1]}"
captured = jnp.ones(8)


def call(kernel=copy_kernel, out=OUT, **options):
    return pl.pallas_call(kernel, out, **options)(jnp.ones(8))


SPECS = [
    (
        dict(in_specs=[pl.BlockSpec((4, 4), lambda i: (i, 0))]),
        ValueError,
        "has 2 dimensions, the array, of shape",
    ),
    (dict(in_specs=[pl.BlockSpec((4,), lambda i: (i, 0))]), ValueError, "must return 1 integers"),
    (
        dict(in_specs=[pl.BlockSpec((4,), lambda i, j: i)]),
        TypeError,
        r"is called with 1 arguments.*takes \(i, j\)",
    ),
    (dict(in_specs=[pl.BlockSpec((4,), lambda i: i / 2)]), TypeError, "divide with `//`"),
    (dict(in_specs=[pl.BlockSpec((4,), lambda i: pl.ds(i, 4))]), TypeError, "must return an integer"),
    (dict(in_specs=[BLOCK, BLOCK]), ValueError, "in_specs must have the structure of the arguments"),
    (dict(in_specs=[BLOCK], out_specs=[BLOCK]), ValueError, "out_specs must have the structure of out_shape"),
    (dict(in_specs=["rows"]), TypeError, "must be a BlockSpec|structure"),
    (dict(in_specs=[pl.BlockSpec((pl.Indirect(4),), lambda i: i)]), NotImplementedError, "Indirect"),
    (dict(input_output_aliases={3: 0}), ValueError, "there are 1 inputs and 1 outputs"),
    (dict(scratch_shapes=[3]), TypeError, "scratch_shapes: entry 0 must be memory"),
]


@pytest.mark.parametrize("options, kind, text", SPECS)
def test_specs(options, kind, text):
    with pytest.raises(kind, match=f"(?s)pallas_call of .*copy_kernel at .*{text}") as caught:
        call(grid=(2,), **options)
    assert COPY in str(caught.value)


def test_aliases_of_other_types():
    with pytest.raises(ValueError, match="only arrays of one type share memory"):
        call(out=S((4,), jnp.float32), input_output_aliases={0: 0})


def test_no_out_shape():
    with pytest.raises(TypeError, match=r"out_shape is None; write the types"):
        pl.pallas_call(copy_kernel, None)


def test_out_shape_without_dtype():
    with pytest.raises(TypeError, match=r"out_shape must have a shape and a dtype"):
        pl.pallas_call(copy_kernel, 3)


def test_grid_spec_and_grid():
    with pytest.raises(ValueError, match="grid is given twice"):
        pl.pallas_call(copy_kernel, OUT, grid_spec=pl.GridSpec(grid=(2,)), grid=(2,))


def test_block_sizes():
    with pytest.raises(ValueError, match="block sizes are positive, got 0 at position 1"):
        pl.BlockSpec((4, 0))
    with pytest.raises(TypeError, match="the block shape first"):
        pl.BlockSpec(lambda i: i, (4,))


def returns_a_value(x_ref, o_ref):
    o_ref[...] = x_ref[...]
    return x_ref[...]


def captures_an_array(x_ref, o_ref):
    o_ref[...] = x_ref[...] + captured


def too_many_references(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def wrong_shape(x_ref, o_ref):
    o_ref[...] = x_ref[:4]


def wrong_dtype(x_ref, o_ref):
    o_ref[...] = x_ref[...].astype(jnp.int32)


def scalar_to_an_array(x_ref, o_ref):
    o_ref[...] = 0.0


def too_many_indices(x_ref, o_ref):
    o_ref[...] = x_ref[0, :]


def index_out_of_bounds(x_ref, o_ref):
    o_ref[8] = 1.0


def slice_out_of_bounds(x_ref, o_ref):
    o_ref[...] = x_ref[pl.ds(4, 8)]


def float_index(x_ref, o_ref):
    o_ref[0] = x_ref[x_ref[0]]


def bool_index(x_ref, o_ref):
    o_ref[...] = x_ref[x_ref[...] > 0]


def reads_the_reference(x_ref, o_ref):
    o_ref[...] = x_ref + 1


def applies_a_function_to_the_reference(x_ref, o_ref):
    o_ref[...] = jnp.sin(x_ref)


def writes_the_reference(x_ref, o_ref):
    o_ref[...] = x_ref


def iterates(x_ref, o_ref):
    for x in x_ref:
        o_ref[0] = x


def axis_beyond_the_grid(x_ref, o_ref):
    o_ref[pl.program_id(2)] = 1.0


def when_returns(x_ref, o_ref):
    @pl.when(x_ref[0] > 0)
    def _():
        return x_ref[0]


def dynamic_size(x_ref, o_ref):
    o_ref[...] = x_ref[pl.ds(0, x_ref[0].astype(jnp.int32))]


def mask_of_floats(x_ref, o_ref):
    o_ref[...] = pl.load(x_ref, mask=x_ref[...])


def mask_of_another_shape(x_ref, o_ref):
    o_ref[...] = pl.load(x_ref, mask=jnp.ones(3, bool))


KERNELS = [
    (returns_a_value, ValueError, "write results to the references of the outputs"),
    (captures_an_array, ValueError, r"arrays that it was not given: f32\[8\]. Pass them as arguments"),
    (too_many_references, TypeError, "is called with 2 references"),
    (wrong_shape, ValueError, r"the value written has shape \(4,\).*write `jnp.broadcast_to"),
    (
        wrong_dtype,
        ValueError,
        r"holds float32, the value written is int32; write `value.astype\(o_ref.dtype\)`",
    ),
    (scalar_to_an_array, ValueError, r"jnp.full\(\(8,\), value, 'float32'\)"),
    (too_many_indices, IndexError, r"takes 1 indices at most, got 2"),
    (index_out_of_bounds, IndexError, "o_ref: index 8 is out of bounds for dimension 0 of size 8"),
    (slice_out_of_bounds, IndexError, r"x_ref: the slice ds\(4, 8\) is out of bounds"),
    (float_index, IndexError, "must be integers, got float32"),
    (bool_index, IndexError, "use `mask=` of load and store"),
    (reads_the_reference, TypeError, r"x_ref is a reference, not an array; read it first, `x_ref\[...\]`"),
    (applies_a_function_to_the_reference, TypeError, r"read it first, `x_ref\[...\]`"),
    (writes_the_reference, TypeError, "read it first"),
    (iterates, TypeError, "cannot be iterated over"),
    (axis_beyond_the_grid, ValueError, "axis 2 is out of bounds for the grid of kernel axis_beyond_the_grid"),
    (when_returns, TypeError, "write it to a reference instead"),
    (dynamic_size, TypeError, "the size must be an integer that is known"),
    (mask_of_floats, TypeError, "write `mask != 0`"),
    (mask_of_another_shape, ValueError, r"the mask has shape \(3,\), the memory \(8,\)"),
]


@pytest.mark.parametrize("kernel, kind, text", KERNELS, ids=lambda x: getattr(x, "__name__", ""))
def test_kernels(kernel, kind, text):
    with pytest.raises(kind, match=f"(?s){text}") as caught:
        call(kernel)
    lines, first = inspect.getsourcelines(kernel)
    numbers = [f"{__file__}:{first + i}" for i in range(len(lines))]
    assert any(number in str(caught.value) for number in numbers)


def test_outside_of_a_kernel():
    with pytest.raises(ValueError, match="call it in a function that is given to `pallas_call`"):
        pl.program_id(0)


def test_not_a_kernel():
    with pytest.raises(TypeError, match="needs a kernel, a function, got 3"):
        pl.pallas_call(3, OUT)
