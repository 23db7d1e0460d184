"""`jax._src.ad_util`: zeros, sums of tangents, and the primitive that stops gradients."""

from purax.compat.modules.ad import add_jaxvals, add_jaxvals_p, instantiate_zeros, zeros_like_aval
from purax.control_flow.custom_jvp import SymbolicZero
from purax.core.avals import Zero
from purax.primitives.stop_gradient import stop_gradient_p

__all__ = [
    "SymbolicZero",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "instantiate_zeros",
    "stop_gradient_p",
    "zeros_like_aval",
]
