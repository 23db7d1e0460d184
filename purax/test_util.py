"""Tools for the tests of programs that use purax, as `jax.test_util`."""

from purax.testing.check_grads import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]
