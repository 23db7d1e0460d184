"""Attention by cuDNN's kernels: which attentions they compute, and the calls of a program for NVIDIA's GPUs.

The kernels take operands as they are, of shape (B, T, N, H), and give o and the logsumexp of the logits of each row;
the backward one takes these. Masks are biases to them. What rows that see no key give is not theirs to say: they are
sums of nothing there, or of what a mask hides, and the mean of all values by the formula.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from purax import numpy as jnp
from purax.core.avals import ShapedArray
from purax.core.primitive import Primitive
from purax.nn import attention_form
from purax.nn.attention_form import Form, Operands
from purax.xla import client, jaxlib_api

_DTYPES = {np.dtype(ml_dtypes.bfloat16): "BF16", np.dtype(np.float16): "F16"}
_HIDDEN = {np.dtype(ml_dtypes.bfloat16): -(2.0**41), np.dtype(np.float16): -(2.0**15)}
_OLDEST = 8904  # the first version whose attention is as it is called here
_WIDEST = 128


def is_there() -> bool:
    """Whether programs run by default on a GPU whose cuDNN has these kernels."""
    device = client.default_device()
    if client.platform_of(device) != "gpu":
        return False
    version = jaxlib_api.cudnn_version()
    major = str(getattr(device, "compute_capability", "0")).partition(".")[0]
    return version is not None and version >= _OLDEST and major.isdigit() and int(major) >= 8


def why_not(form: Form, operands: Operands) -> str | None:
    """What keeps the kernels from computing an attention and its derivatives, or None."""
    dtypes = {np.dtype(x.dtype) for x in (operands.query, operands.key, operands.value)}
    _, length, key_length, _, _, width = operands.sizes
    if len(dtypes) > 1 or not dtypes <= set(_DTYPES):
        return (
            "query, key and value must be of one dtype, bfloat16 or float16, not "
            f"{', '.join(x.dtype.name for x in (operands.query, operands.key, operands.value))}"
        )
    if width % 8 or width > _WIDEST:
        return f"the width of a head must be a multiple of 8 of at most {_WIDEST}, not {width}"
    if not length or not key_length:
        return f"there must be positions, not {length} of the query and {key_length} of the key"
    if not form.is_causal and form.after is not None and form.after != 0:
        return f"a window must end at its own position without is_causal, not {form.after} positions after it"
    if (form.after is not None and form.after < 0) or (form.before is not None and form.before < 0):
        return f"a window has no negative sizes: ({form.before}, {form.after})"
    if form.before is not None and length > key_length:
        return f"a window needs as many positions of the key as of the query, not {key_length} and {length}"
    return None


def why_not_backward(operands: Operands) -> str | None:
    """What keeps the kernels from computing the derivatives of an attention whose results they compute, or None."""
    _, length, key_length, *_ = operands.sizes
    if length % 2 or key_length % 2:
        return f"lengths must be even, not {length} and {key_length}"
    return None


class CudnnCall(Primitive):
    """A call of cuDNN's attention; it has no rules but for lowering, and stands in programs for GPUs alone.

    Params:
        target: the name of the kernel.
        config: what it is told, as JSON.
        results: the types of its results.
        orders: the axes of each of them, from the fastest to the slowest.
    """

    name = "cudnn_attention"
    multiple_results = True

    def infer(self, *avals, target, config, results, orders):
        return list(results)

    def lower(self, builder, *operands, target, config, results, orders):
        def layouts(found: Sequence[Sequence[int]]) -> str:
            texts = [
                f"dense<{list(order) if len(order) > 1 else 0}> : tensor<{len(order)}xindex>"
                for order in found
            ]
            return f"[{', '.join(texts)}]"

        given = [tuple(reversed(range(x.aval.ndim))) for x in operands]
        return builder.custom_call(
            target,
            operands,
            results,
            api_version=2,
            backend_config=config.replace('"', "\\22"),
            attributes=f"operand_layouts = {layouts(given)}, result_layouts = {layouts(orders)}",
        )


cudnn_call_p = CudnnCall()


def _dimensions(lhs: Sequence[int], rhs: Sequence[int], lhs_heads: int, rhs_heads: int) -> dict[str, Any]:
    """The axes of a product that are contracted, and those of the batch."""
    return {
        "lhs_contracting_dimensions": [str(axis) for axis in lhs],
        "rhs_contracting_dimensions": [str(axis) for axis in rhs],
        "lhs_batch_dimensions": ["0", str(lhs_heads)],
        "rhs_batch_dimensions": ["0", str(rhs_heads)],
    }


_FORWARD = {
    "bmm1_dot_dimension_numbers": _dimensions([3], [3], 2, 2),
    "bmm2_dot_dimension_numbers": _dimensions([3], [1], 1, 2),
}
_BACKWARD = {
    "bmm1_grad_gemm1_dot_dimension_numbers": _dimensions([2], [1], 1, 2),
    "bmm1_grad_gemm2_dot_dimension_numbers": _dimensions([3], [1], 1, 2),
    "bmm2_grad_gemm1_dot_dimension_numbers": _dimensions([2], [1], 1, 2),
    "bmm2_grad_gemm2_dot_dimension_numbers": _dimensions([3], [3], 2, 2),
}


def configuration(form: Form, operands: Operands, products: dict[str, Any]) -> str:
    """What a kernel is told, as JSON."""
    batch, length, key_length, heads, _, _ = operands.sizes
    has_lengths = operands.query_lengths is not None or operands.key_lengths is not None
    ends_at_itself = form.is_causal or form.after == 0  # a window is told by its beginning alone
    mask = "_".join(["PADDING"] * has_lengths + ["CAUSAL"] * ends_at_itself) or "NO_MASK"
    absent = "PRIMITIVE_TYPE_INVALID"
    settings = {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": form.scale,
        "intermediate_tensor_shape": {
            "element_type": _DTYPES[np.dtype(operands.query.dtype)],
            "dimensions": [str(n) for n in (batch, heads, length, key_length)],
            "tuple_shapes": [],
            "layout": {
                "dim_level_types": [],
                "dim_unique": [],
                "dim_ordered": [],
                "minor_to_major": ["3", "2", "1", "0"],
                "tiles": [],
                "element_size_in_bits": "0",
                "memory_space": "0",
                "index_primitive_type": absent,
                "pointer_primitive_type": absent,
                "dynamic_shape_metadata_prefix_bytes": "0",
            },
            "is_dynamic_dimension": [False] * 4,
        },
        "is_flash_attention": True,
        "mask_type": mask,
        **products,
        "dropout_rate": 0.0,
        "seed": 42,
        "sliding_window_length": 0 if form.before is None else form.before + 1,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
    }
    return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": settings})


def _bias(operands: Operands) -> Any:
    """What is added to the logits, with a small number where the mask hides them; None for nothing."""
    _, length, key_length, *_ = operands.sizes
    bias = operands.bias
    if operands.mask is not None:
        dtype = np.dtype(operands.query.dtype)
        hidden = jnp.where(operands.mask, np.array(0, dtype), np.array(_HIDDEN[dtype], dtype))
        bias = hidden if bias is None else bias + hidden
    return None if bias is None else jnp.broadcast_to(bias, (*bias.shape[:2], length, key_length))


def _lengths(operands: Operands) -> list[Any]:
    """How many positions of query and key count in each batch element; nothing if all do everywhere."""
    batch, length, key_length, *_ = operands.sizes
    given = (operands.query_lengths, operands.key_lengths)
    if given == (None, None):
        return []
    return [
        jnp.full((batch,), whole, np.int32) if x is None else x
        for x, whole in zip(given, (length, key_length), strict=True)
    ]


def _has_no_keys(operands: Operands) -> Any:
    """Which batch elements have no keys, of shape (B, 1, 1, 1)."""
    return (operands.key_lengths <= 0)[:, None, None, None]


def rows_without_keys(form: Form, operands: Operands) -> Any:
    """Which rows see no key, of a shape that spreads to (B, T, N, 1); None if all see one."""
    if operands.mask is not None:
        sees = jnp.any(attention_form.visible(form, operands), axis=3, keepdims=True)
        return jnp.transpose(~sees, (0, 2, 1, 3))
    return None if operands.key_lengths is None else _has_no_keys(operands)


_ROWS = (3, 1, 2, 0)  # of results that are heads by positions, as they lie beside the operands
_WORKSPACE = ShapedArray((0,), np.uint8)


def attention(form: Form, operands: Operands, with_sums: bool) -> list[Any]:
    """As `attention_form.attention`; m is the logsumexp, and l is 1."""
    batch, length, key_length, heads, key_heads, width = operands.sizes
    bias = _bias(operands)
    sums = ShapedArray((batch, heads, length), np.float32)
    out, *rest = cudnn_call_p.bind(
        operands.query,
        operands.key,
        operands.value,
        *([] if bias is None else [bias]),
        *_lengths(operands),
        target="__cudnn$fmhaSoftmax" if bias is None else "__cudnn$fmhaScaleBiasSoftmax",
        config=configuration(form, operands, _FORWARD),
        results=(
            ShapedArray((batch, heads, length, width), operands.query.dtype),
            *([sums] if with_sums else []),
            _WORKSPACE,
        ),
        orders=(_ROWS, *([(2, 1, 0)] if with_sums else []), (0,)),
    )
    out = jnp.transpose(out, (0, 2, 1, 3))
    without = rows_without_keys(form, operands)
    if without is not None:
        mean = jnp.mean(operands.value.astype(np.float32), axis=1, keepdims=True).astype(out.dtype)
        mean = jnp.repeat(mean, heads // key_heads, axis=2)
        out = jnp.where(without, mean, out)
    return [out, rest[0], jnp.ones_like(rest[0])] if with_sums else [out]


tangent = attention_form.tangent  # cuDNN has no kernel for it


def cotangent(
    form: Form, operands: Operands, results: Sequence[Any], cotangents: Sequence[Any], moving: Sequence[bool]
) -> list[Any]:
    """As `attention_form.cotangent`, for a cotangent of l that is 0."""
    batch, length, key_length, heads, key_heads, width = operands.sizes
    out, logsumexp, _ = results
    by_out = cotangents[0]
    bias = _bias(operands)
    without = rows_without_keys(form, operands)
    by_rows = by_out
    if without is not None:
        by_out = jnp.where(without, jnp.zeros_like(by_out), by_out)
    dtype = operands.query.dtype
    by_query, by_key, by_value, *rest = cudnn_call_p.bind(
        operands.query,
        operands.key,
        operands.value,
        logsumexp,
        by_out,
        *([] if bias is None else [bias]),
        out,
        *_lengths(operands),
        target="__cudnn$fmhaSoftmaxBackward" if bias is None else "__cudnn$fmhaScaleBiasSoftmaxBackward",
        config=configuration(form, operands, _BACKWARD),
        results=(
            ShapedArray((batch, heads, length, width), dtype),
            *[ShapedArray((batch, key_heads, key_length, width), dtype)] * 2,
            *([] if bias is None else [ShapedArray(bias.shape, bias.dtype)]),
            _WORKSPACE,
        ),
        orders=(_ROWS, _ROWS, _ROWS, *([] if bias is None else [(3, 2, 1, 0)]), (0,)),
    )
    found = [jnp.transpose(x, (0, 2, 1, 3)) for x in (by_query, by_key, by_value)]
    if operands.key_lengths is not None:
        found = [jnp.where(_has_no_keys(operands), jnp.zeros_like(x), x) for x in found]
    if without is not None:
        rows = jnp.where(without, by_rows.astype(np.float32), np.float32(0))
        rows = rows.reshape(batch, length, key_heads, -1, width)
        found[2] += (jnp.sum(rows, axis=(1, 3)) / key_length).astype(dtype)[:, None]
    if len(moving) > 3 and moving[3]:
        by_bias = rest[0]
        if operands.mask is not None:
            by_bias = jnp.where(operands.mask, by_bias, jnp.zeros_like(by_bias))
        if operands.key_lengths is not None and by_bias.shape[0] == batch:
            by_bias = jnp.where(_has_no_keys(operands), jnp.zeros_like(by_bias), by_bias)
        axes = tuple(i for i in range(4) if operands.bias.shape[i] != by_bias.shape[i])
        found.append(jnp.sum(by_bias, axis=axes, keepdims=True).astype(operands.bias.dtype))
    return [x for x, flag in zip(found, moving, strict=False) if flag]


__all__ = [
    "attention", "cotangent", "cudnn_call_p", "is_there", "rows_without_keys", "tangent", "why_not", "why_not_backward",
]  # fmt: skip
