"""Operations on values as they are, for the compiler's eyes: `optimization_barrier`, which it moves nothing across, and
`dce_sink`, which keeps what computes its operands in the program.
"""

from __future__ import annotations

from purax.core.avals import Zero
from purax.core.effects import debug
from purax.core.primitive import Primitive, is_linear


class OptimizationBarrier(Primitive):
    """The operands, all computed before anything that uses one of the results."""

    name = "optimization_barrier"
    keeps_ends = True
    moves_elements = True
    is_fused = False
    mixes_memories = True
    multiple_results = True
    host_is_cheap = True

    def infer(self, *avals):
        return list(avals)

    def lay_out(self, outs, *avals):
        return [aval.spec for aval in avals]

    def host(self, *operands):
        return list(operands)

    def lower(self, builder, *operands):
        return builder.op("optimization_barrier", operands, [x.aval for x in operands])

    def jvp(self, primals, tangents):
        out = self.bind(*primals)
        moving = [t for t in tangents if type(t) is not Zero]
        moved = iter(self.bind(*moving) if moving else ())
        return out, [t if type(t) is Zero else next(moved) for t in tangents]

    def transpose(self, cotangents, *operands):
        given = [c for c in cotangents if type(c) is not Zero]
        passed = iter(self.bind(*given) if given else ())
        results = [c if type(c) is Zero else next(passed) for c in cotangents]
        return [c if is_linear(x) else None for x, c in zip(operands, results, strict=True)]

    def batch(self, operands, batch_axes):
        return self.bind(*operands), list(batch_axes)


class DceSink(Primitive):
    """Nothing; but as an equation with an effect it stays in the program, and with it what computes its operands."""

    name = "dce_sink"
    multiple_results = True

    def infer(self, *avals):
        return []

    def host(self, *operands):
        return []

    def lower(self, builder, *operands):
        return []

    def effects(self):
        return _stays

    def jvp(self, primals, tangents):
        return self.bind(*primals), []

    def batch(self, operands, batch_axes):
        return self.bind(*operands), []


_stays = frozenset({debug})

optimization_barrier_p = OptimizationBarrier()
dce_sink_p = DceSink()
