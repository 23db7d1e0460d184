"""Rows divided by their root mean square, scaled and shifted."""

from __future__ import annotations

from typing import Any

from purax import lax
from purax import numpy as jnp


def rms_norm(
    x: Any,
    weight: Any,
    bias: Any,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-5,
    backward_pass_impl: str = "triton",
    interpret: bool = False,
) -> Any:
    """The RMS norm of the rows of `x`."""
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * weight + bias


def rms_norm_reference(x: Any, weight: Any, bias: Any, *, eps: float = 1e-5) -> Any:
    """The same as `rms_norm`."""
    return rms_norm(x, weight, bias, eps=eps)
