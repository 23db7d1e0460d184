"""exp, log, log1p and log Γ as XLA computes them.

`purax.random` draws with them, so that its numbers are jax's to the last bit, which those of
`purax.primitives.elementwise.transcendental`
and `purax.primitives.special.special` may not be on the CPU. `purax.nn` takes exp, whose arguments are below 0
there, since XLA merges it with a sum.
"""

from __future__ import annotations

import functools

from purax.primitives.elementwise.elementwise import Elementwise
from purax.primitives.elementwise.even_loops import evenly
from purax.primitives.elementwise.transcendental import Exp, Log, Log1p
from purax.primitives.special.special import Lgamma


class EngineExp(Exp):
    """eˣ by XLA's own operation."""

    name = "engine_exp"
    row_operation = "exp"
    emit = Elementwise.emit


class EngineLog(Log):
    """The natural logarithm by XLA's own operation."""

    name = "engine_log"
    row_operation = "log"
    opcode = "log"
    emit = Elementwise.emit


class EngineLog1p(Log1p):
    """log(1 + x) by XLA's own operation."""

    name = "engine_log1p"

    def emit(self, builder, x):
        return evenly(builder, self.name, x, functools.partial(Elementwise.emit, self))


class EngineLgamma(Lgamma):
    """log |Γ(x)| by XLA's own operation."""

    name = "engine_lgamma"
    emit = Elementwise.emit


engine_exp_p = EngineExp()
engine_log_p = EngineLog()
engine_log1p_p = EngineLog1p()
engine_lgamma_p = EngineLgamma()


exp = engine_exp_p.bind
log = engine_log_p.bind
log1p = engine_log1p_p.bind
lgamma = engine_lgamma_p.bind
