"""Custom derivative rules, as `jax.custom_derivatives`."""

from purax.control_flow.custom_jvp import SymbolicZero, custom_jvp, zero_from_primal
from purax.control_flow.custom_vjp import (
    CustomVJPPrimal,
    closure_convert,
    custom_gradient,
    custom_vjp,
    custom_vjp_primal_tree_values,
)
from purax.control_flow.linear_call import linear_call

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]
