"""Kernels as they are recorded for GPUs, run step by step on the host: offsets, masks and batches are right."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import purax
from purax import numpy as jnp
from purax.core.jaxpr import eval_jaxpr
from purax.pallas import triton_call
from tests.on_device import test_pallas as kernels
from tests.pallas.kernels import CASES, purax_namespace


def run_steps(function, *args) -> list[np.ndarray]:
    """The results of the one kernel that a function calls, each step run on memories of NumPy."""
    (eqn,) = purax.make_jaxpr(function)(*args).eqns
    plan = eqn.params["plan"]
    request, tree, parts = plan.for_gpu
    closed, axes = triton_call.record(request, tree, parts, plan.batches)
    _, _, inputs, outputs, _, _ = parts
    sizes = tuple(size for size, _ in reversed(plan.batches))
    memories = [np.array(x) for x in args]
    for o, operand in enumerate(outputs):
        source = next((i for i, out in request.aliases.items() if out == o), None)
        begin = np.full((*sizes, *operand.aval.shape), 0, operand.aval.dtype)
        memories.append(begin if source is None else memories[source].copy())
    for ids in itertools.product(*map(range, axes)):
        positions = [np.int32(i) for i in ids]
        memories = [np.asarray(x) for x in eval_jaxpr(closed.jaxpr, closed.consts, *positions, *memories)]
    return memories[len(inputs) :]


NAMES = (
    "add_vectors edge_blocks edge_blocks_of_two_dimensions matmul matmul_accumulating_in_the_output softmax_with_masks "
    "softmax layer_norm stencil stencil_with_padding stencil_of_two_dimensions squeezed_dimensions blocks_in_reverse "
    "outputs_in_reverse diagonal_blocks masks_beyond_the_end masks_at_arrays_of_positions parts_of_references "
    "integers_of_32_bits convolution input_and_output_share_memory gather"
).split()


@pytest.mark.parametrize("case", [c for c in CASES if c.name in NAMES], ids=lambda case: case.name)
def test_steps_on_memories(case):
    function = case.build(purax_namespace())
    args = [jnp.asarray(x) for x in case.args]
    wanted = purax.tree.leaves(function(*args))
    for got, want in zip(run_steps(function, *args), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_batches_are_at_their_offsets():
    x = kernels.floats(3, 8, 100)
    (got,) = run_steps(purax.vmap(kernels.softmax), x)
    np.testing.assert_allclose(got, purax.nn.softmax(x), rtol=1e-5, atol=1e-6)
    x, g, b = kernels.floats(2, 3, 8, 16), kernels.floats(3, 16, seed=1), kernels.floats(16, seed=2)
    norm = purax.vmap(purax.vmap(kernels.layer_norm, in_axes=(0, 0, None)), in_axes=(0, None, None))
    (got,) = run_steps(norm, x, g, b)
    np.testing.assert_allclose(got, norm(x, g, b), rtol=1e-4, atol=1e-5)


def test_attention_reads_its_keys():
    q, k, v = (kernels.floats(2, 32, 16, seed=i) for i in range(3))
    for causal in (False, True):
        (got,) = run_steps(lambda *a, c=causal: kernels.attention(*a, causal=c, block=16), q, k, v)
        np.testing.assert_allclose(got, kernels.attention_formula(q, k, v, causal), rtol=1e-4, atol=1e-5)
