"""`stop_gradient`: a value that counts as a constant when it is differentiated."""

from __future__ import annotations

from purax.core.avals import Zero
from purax.core.primitive import Primitive


class StopGradient(Primitive):
    """`x`, with derivative zero."""

    name = "stop_gradient"
    keeps_ends = True
    moves_elements = True
    is_cheap_to_repeat = True
    host_is_cheap = True

    def infer(self, x):
        return x

    def lay_out(self, out, x):
        return x.spec

    def host(self, x):
        return x

    def lower(self, builder, x):
        return x

    def jvp(self, primals, tangents):
        out = self.bind(primals[0])
        return out, Zero.like(out)

    def transpose(self, cotangent, x):
        return (None,)

    def batch(self, operands, batch_axes):
        return self.bind(operands[0]), batch_axes[0]


stop_gradient_p = StopGradient()


stop_gradient = stop_gradient_p.bind
