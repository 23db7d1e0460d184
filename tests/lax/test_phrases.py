"""Messages about shapes, axes and structures say what jax's say, since tests of libraries look for these words."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax

GATHER = "lax.gather(z(5, 4), z(3, 1, d=int), lax.GatherDimensionNumbers({}), {})"
SCATTER = "lax.scatter_add(z(5, 4), z(3, 1, d=int), z{}, lax.ScatterDimensionNumbers({}))"
DOT = "lax.dot_general(z(2, 3), z(3, 4), {})"
CONVOLUTION = "lax.conv_general_dilated(z(1, 2, 8, 8), z{}, (1, 1), 'SAME'{})"
PHRASES = {
    "lax.gather(z(5, 4), z(3, 1), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4))": "indices must have an intege",
    GATHER.format("(5,), (0,), (0,)", "(1, 4)"): "Offset dimension 0 in gather op is out of bounds; got 5",
    GATHER.format("(), (0,), (0,)", "(1, 4)"): "All components of the offset index in a gather op must either be a off",
    GATHER.format("(1,), (0,), (0, 1)", "(1, 4)"): "Gather op has 2 elements in start_index_map and the bound of dimen",
    GATHER.format("(1,), (0,), (4,)", "(1, 4)"): "Invalid start_index_map; domain is [0, 2), got: 0->4.",
    GATHER.format("(1,), (4,), (0,)", "(1, 4)"): "Invalid collapsed_slice_dims set in gather op; valid range is [0, 2)",
    GATHER.format("(1,), (0, 0), (0,)", "(1, 4)"): "collapsed_slice_dims in gather op must not repeat; got: (0, 0)",
    GATHER.format("(1,), (0,), (0,)", "(1,)"): "Gather op must have one slice size for every input dimension",
    GATHER.format("(1,), (0,), (0,)", "(1, 9)"): "Slice size at index 1 in gather op is out of range, must be within",
    GATHER.format("(1,), (0,), (0,)", "(2, 4)"): "Gather op can only collapse slice dims with bound 1, but bound is 2",
    GATHER.format("(), (0,), (0,), (1,)", "(1, 1)"): "Gather op requires equal numbers of operand_batching_dims and st",
    SCATTER.format("(3, 4)", "(9,), (0,), (0,)"): "Invalid update_window_dims set in scatter op; valid range is [0, 2)",
    SCATTER.format("(3, 4)", "(1,), (9,), (0,)"): "Invalid inserted_window_dims set in scatter op; valid range",
    SCATTER.format("(3, 4)", "(1,), (0,), (9,)"): "Invalid scatter_dims_to_operand_dims mapping; domain is [0, 2)",
    SCATTER.format("(3, 4, 1)", "(1,), (0,), (0,)"): "Updates tensor must be of rank 2; got 3.",
    SCATTER.format("(3, 9)", "(1,), (0,), (0,)"): "Bounds of the window dimensions of updates must not exceed",
    SCATTER.format("(2, 4)", "(1,), (0,), (0,)"): "For scatter dimension 0, updates bound is 2, indices bound is 3",
    "lax.broadcast_in_dim(z(2), (2, 3), ())": "broadcast_dimensions must have length equal to operand ndim",
    "lax.broadcast_in_dim(z(2), (2, 3), (2,))": "broadcast_dimensions must be a subset of output dimensions, got (2,)",
    "lax.broadcast_in_dim(z(2), (3, 3), (0,))": "operand dimension sizes must either be 1, or be equal to their",
    "lax.squeeze(z(2, 1), (0,))": "cannot select an axis to squeeze out which has size not equal to one",
    "lax.argmin(z(2, 0), 1, int)": "require non-empty reduced dimension. operand.shape=(2, 0) axis=1",
    CONVOLUTION.format("(3, 2, 3)", ""): "convolution requires lhs and rhs ndim to be equal, got 4 and 3",
    CONVOLUTION.format("(3, 4, 3, 3)", ""): "divided by feature_group_count must equal the rhs input feature dimension",
    CONVOLUTION.format("(3, 2, 3, 3)", ", feature_group_count=3"): "feature_group_count must divide lhs feature dimens",
    CONVOLUTION.format("(3, 2, 3, 3)", ", dimension_numbers=('NCHH', 'OIHW', 'NCHW')"): "cannot have duplicate charact",
    DOT.format("(((7,), (0,)), ((), ()))"): "dot_general requires lhs dimension numbers to be nonnegative and less tha",
    DOT.format("(((1, 1), (0, 1)), ((), ()))"): "requires lhs contracting dimensions to be distinct, got lhs_contracti",
    DOT.format("(((1,), (0,)), ((0,), ()))"): "dot_general requires equal numbers of lhs_batch and rhs_batch dimension",
    DOT.format("(((1,), (0,)), ((1,), (0,)))"): "batch dimensions to be disjoint from contracting dimensions",
    "lax.ragged_dot(z(5, 3), z(2, 3, 4), z(3, d=int))": "expected rhs group dimension size to be 3, got 2",
    "lax.pad(z(3), 0.0, [])": "length of padding_config must equal the number of axes of operand",
    "lax.pad(z(3), 0.0, [(-2, -2, 0)])": "Dimension size after padding is not at least 0, got result shape (-1,)",
    "lax.dynamic_slice(z(3), (0,), (4,))": "slice slice_sizes must be less than or equal to operand shape",
    "lax.dynamic_slice(z(3, 4), (0,), (1, 1))": "Length of slice indices must match number of operand dimensions",
    "lax.dynamic_update_slice(z(3), z(4), (0,))": "update shape must be smaller than operand shape, got update shape (",
    "lax.reshape(z(2, 3), (6,), (0, 0))": "reshape dimensions must be a permutation of operand dimensions",
    "np.reshape(z(6), (4, -1))": "because the product of specified axis sizes (4) does not evenly divide 6",
    "lax.transpose(z(2, 3), (0,))": "transpose permutation isn't a permutation of operand dimensions",
    "lax.concatenate([z(2), z(2, 2)], 0)": "Cannot concatenate arrays with different numbers of dimensions: got (2,),",
    "lax.concatenate([z(2, 3), z(2, 4)], 0)": "Cannot concatenate arrays with shapes that differ in dimensions other t",
    "lax.cond(True, lambda x: (x, x), lambda x: x, 1.0)": "branch outputs must have the same pytree structure, but the",
    "lax.cond(z(2) > 0, lambda x: x, lambda x: x, 1.0)": "Pred must be a scalar, got ",
    "lax.scan(lambda c, x: ((c, c), x), 1.0, z(3))": "carry input and carry output must have the same pytree structure",
    "lax.scan(lambda c, x: (z(3), x), z(2), z(3))": "carry input and carry output must have equal types, but they diff",
    "lax.scan(lambda c, x: (c, x), 1.0, z(3), length=4)": "got `length` argument of 4 which disagrees with leading axi",
    "lax.while_loop(lambda x: x > 0, lambda x: x, z(2))": "cond_fun must return a boolean scalar, but ",
    "jax.grad(lambda x: x)(z(3))": "Gradient only defined for scalar-output functions. Output had shape: (3,)",
    "jax.grad(lambda x: x * 1.0)(3)": "requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.",
    "jax.vmap(lambda a, b: a)(z(2), z(3))": "vmap got inconsistent sizes for array axes to be mapped",
    "jax.vmap(lambda a: a, in_axes=2)(z(2))": "which implies that its rank should be at least 3, but is only 1 (its sh",
}  # fmt: skip


def message(module, call: str) -> str:
    names = {
        "jax": module,
        "lax": module.lax,
        "np": module.numpy,
        "z": lambda *shape, d=np.float32: module.numpy.zeros(shape, d),
    }
    with pytest.raises((TypeError, ValueError)) as caught:
        eval(call, names)
    return str(caught.value)


@pytest.mark.parametrize("call", PHRASES)
def test_a_message_says_what_jax_says(call):
    assert PHRASES[call] in message(jax, call), "jax says something else"
    assert PHRASES[call] in message(purax, call)
