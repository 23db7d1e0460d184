"""Tools for the tests of programs that use purax, as `jax.test_util`."""

from purax.testing.check_grads import check_grads, check_jvp, check_vjp
from purax.testing.closeness import check_close

__all__ = ["check_close", "check_grads", "check_jvp", "check_vjp"]
