"""Names of `jax.custom_derivatives` beyond purax's: the primitives that calls with custom rules are recorded as."""

from purax.control_flow.custom_jvp import custom_jvp_call_p
from purax.control_flow.custom_vjp import custom_vjp_call_p

__all__ = ["custom_jvp_call_p", "custom_vjp_call_p"]
