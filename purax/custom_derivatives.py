"""Custom derivative rules, as `jax.custom_derivatives`."""

from purax.control_flow.custom_jvp import SymbolicZero, custom_jvp
from purax.control_flow.custom_vjp import CustomVJPPrimal, closure_convert, custom_gradient, custom_vjp

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_vjp"]
