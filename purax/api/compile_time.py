"""Computing while a function is being recorded: what is known then is done at once, and not part of the program.

Operations on tracers go on to the transformation under way, so that a library can try whether a value is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from purax.core import purity_hook
from purax.core.trace import Trace, Tracer, current, eager_trace, using
from purax.scopes import scoped


class CompileTimeTrace(Trace):
    """Runs operations on concrete arrays and hands those on tracers to the trace it was made in."""

    __slots__ = ()
    name = "ensure_compile_time_eval"

    def process(self, primitive, operands, params):
        trace = self.parent if any(isinstance(x, Tracer) for x in operands) else eager_trace()
        with using(trace):
            return trace.process(primitive, operands, params)


@scoped
def ensure_compile_time_eval() -> Iterator[None]:
    """Inside the `with` block, operations on concrete arrays are computed while a function is being traced.

    >>> import purax as px, purax.numpy as jnp
    >>> @px.jit
    ... def f(x):
    ...     with px.ensure_compile_time_eval():
    ...         n = int(jnp.sum(jnp.arange(4)))
    ...     return x * n
    >>> f(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    outer = current.trace
    purity_hook.installed.watcher.values_read()
    with using(outer if outer is eager_trace() else CompileTimeTrace(outer)):
        yield
