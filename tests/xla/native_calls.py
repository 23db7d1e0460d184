"""Programs that call every native kernel, in every form that asks for memory; sizes are just large enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.lowering.cpu.outline_kernels import joined_p
from purax.primitives.reductions.cumulative import cumsum_p
from purax.xla import native

LONG = 1 << 16  # from here on threads share a row that is sorted or summed


def _numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    numbers = np.random.default_rng([7, *shape]).normal(size=shape) * 50
    if dtype.startswith("complex"):
        return (numbers + 1j * numbers[..., ::-1]).astype(dtype)
    return np.asarray(jnp.asarray(numbers.astype("float32")).astype(dtype))


def _positive(count: int, n: int) -> np.ndarray:
    x = _numbers(count, n, n) / 50
    return np.asarray(x @ x.transpose(0, 2, 1) + n * np.eye(n), np.float32)


def _convolve(x: Any, w: Any, **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, **{"window_strides": (1, 1), "padding": "SAME", **options})


def _kernel_gradient(x: Any, w: Any, **options: Any) -> Any:
    return px.grad(lambda own: jnp.sum(_convolve(x, own, **options) ** 2))(w)


def _normalized(x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-3)


def _layers(x: Any, w: Any) -> Any:
    """Several alike, whose operations between the products become one program on rows."""
    for _ in range(4):
        x = px.nn.softmax(_normalized(x @ w)) + jnp.where(x > 0, x, 0)
    return jnp.sum(x**2)


def calls() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions and their arguments, by name."""
    images, last = _numbers(2, 20, 9, 9), {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    return {
        "sort of a long row": (jnp.sort, (_numbers(2 * LONG),)),
        "sort of a long row with many alike": (
            jnp.sort,
            (np.zeros(2 * LONG, np.int32) + (np.arange(2 * LONG) < 9),),
        ),
        "sort of rows": (jnp.sort, (_numbers(300, 50),)),
        "sort of columns": (lambda x: jnp.sort(x, 0), (_numbers(300, 40, dtype="float64"),)),
        "order of a long row": (jnp.argsort, (_numbers(LONG),)),
        "order of rows": (jnp.argsort, (_numbers(300, 50, dtype="float64"),)),
        "sort of several arrays": (
            lambda *xs: lax.sort(xs, num_keys=2),
            (_numbers(200, 30), _numbers(200, 30), _numbers(200, 30)),
        ),
        "few of a long row": (lambda x: lax.top_k(x, 5), (_numbers(8 * LONG),)),
        "many of rows": (lambda x: lax.top_k(x, 40), (_numbers(300, 50),)),
        "few of rows": (lambda x: lax.top_k(x, 2), (_numbers(300, 2000),)),
        "running sum of a long row": (
            lambda x: cumsum_p.bind(x, axis=0, reverse=False),
            (_numbers(2 * LONG),),
        ),
        "running sum of columns": (lambda x: jnp.cumsum(x, 0), (_numbers(300, 40),)),
        "cholesky": (jnp.linalg.cholesky, (_positive(300, 6),)),
        "lu": (lambda x: lax.linalg.lu(x), (_positive(300, 6),)),
        "triangular solve": (
            lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
            (_positive(300, 6), _numbers(300, 6, 3)),
        ),
        "qr": (lambda x: jnp.linalg.qr(x), (_numbers(300, 6, 4),)),
        "eigh": (lambda x: jnp.linalg.eigh(x), (_positive(300, 5),)),
        "svd": (lambda x: jnp.linalg.svd(x), (_numbers(300, 5, 4),)),
        "concatenate": (lambda *xs: joined_p.bind(*xs, dimension=1), (_numbers(600, 30), _numbers(600, 40))),
        "convolution": (_convolve, (images, _numbers(24, 20, 3, 3))),
        "convolution with holes": (
            lambda x, w: _convolve(x, w, lhs_dilation=(2, 2)),
            (images, _numbers(24, 20, 3, 3)),
        ),
        "convolution of few features": (
            lambda x, w: _convolve(x, w, **last),
            (_numbers(2, 12, 12, 3), _numbers(3, 3, 3, 32)),
        ),
        "convolution by one element": (_convolve, (images, _numbers(24, 20, 1, 1))),
        "convolution by groups": (
            lambda x, w: _convolve(x, w, feature_group_count=2),
            (images, _numbers(24, 10, 3, 3)),
        ),
        "derivative by the kernel": (_kernel_gradient, (images, _numbers(24, 20, 3, 3))),
        "derivative by a kernel of one feature": (
            lambda x, w: _kernel_gradient(x, w, feature_group_count=20),
            (images, _numbers(20, 1, 3, 3)),
        ),
        "derivative by the same, features last": (
            lambda x, w: _kernel_gradient(x, w, feature_group_count=32, **last),
            (_numbers(2, 9, 9, 32), _numbers(3, 3, 1, 32)),
        ),
        "fft of lines": (jnp.fft.fft, (_numbers(300, 60, dtype="complex64"),)),
        "fft of a long line": (jnp.fft.fft, (_numbers(LONG, dtype="complex64"),)),
        "fft of a long line of reals": (jnp.fft.rfft, (_numbers(LONG),)),
        "fft back to a long line of reals": (jnp.fft.irfft, (_numbers(LONG + 1, dtype="complex64"),)),
        "fft of planes": (lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x)), (_numbers(20, 30, 44),)),
        "rows of a table": (lambda x, i: x[i], (_numbers(500, 70), np.arange(2000) % 500)),
        "sums of segments": (lambda x, i: px.ops.segment_sum(x, i, 4), (_numbers(LONG), np.arange(LONG) % 4)),
        "sum of a long row": (jnp.sum, (_numbers(4 * LONG),)),
        "largest of columns": (lambda x: jnp.max(x, 0), (_numbers(LONG // 8, 40),)),
        "vector dot": (jnp.vdot, (_numbers(4 * LONG), _numbers(4 * LONG))),
        "place of the largest": (jnp.argmax, (_numbers(8 * LONG),)),
        "small product": (jnp.matmul, (_numbers(20, 21), _numbers(21, 22))),
        "products of a batch": (jnp.matmul, (_numbers(30, 40, 50), _numbers(30, 50, 60))),
        "product by a vector": (jnp.matmul, (_numbers(600, 700), _numbers(700))),
        **{
            f"product of {dtype}": (
                jnp.matmul,
                (_numbers(150, 160, dtype=dtype), _numbers(160, 170, dtype=dtype)),
            )
            for dtype in ("bfloat16", "int8", "int16", "int32", "complex64")
            if dtype != "bfloat16" or not (native.is_available() and native.multiplies_tiles())  # XLA does then
        },
        "random words": (lambda: px.random.bits(px.random.key(3), (3 * LONG,)), ()),
        "programs on rows": (px.value_and_grad(_layers), (_numbers(256, 96), _numbers(96, 96))),
    }
