"""`to_memory`: a value in another memory of its device, the device's own or that of the host.

Types say where values are, so cotangents go back to where the operand was. Programs for the CPU, which has one memory,
leave values where they are; for all others XLA makes a copy, which it may start early and overlap with other work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.core.memories import HOST_KIND, MemorySpace
from purax.core.primitive import Primitive
from purax.xla.array import as_operand


class ToMemory(Primitive):
    """`x`, in the memory `space`."""

    name = "to_memory"
    keeps_ends = True
    is_linear = True
    moves_elements = True
    mixes_memories = True
    is_fused = False
    runs_itself = True
    move: Callable[[Any, MemorySpace], Any]  # of a concrete array; `execution.device_put` installs it

    def infer(self, x, *, space):
        return x.with_memory(space)

    def lay_out(self, out, x, *, space):
        return x.spec

    def host(self, x, *, space):
        return x

    def run(self, x, *, space):
        return self.move(as_operand(x), space)

    def lower(self, builder, x, *, space):
        if builder.module.platform == "cpu":
            return x
        kind = HOST_KIND if space is MemorySpace.Host else "device"
        (moved,) = builder.op(
            "custom_call",
            [x],
            [x.aval.with_memory(space)],
            'call_target_name = "annotate_device_placement", has_side_effect = true, backend_config = ""',
            discardable=f'mhlo.frontend_attributes = {{_xla_buffer_placement = "{kind}"}}',
        )
        return moved

    def jvp(self, primals, tangents, *, space):
        return self.bind(*primals, space=space), self.bind(*tangents, space=space)

    def transpose(self, cotangent, x, *, space):
        return (to_memory(cotangent, x.aval.memory_space),)

    def batch(self, operands, batch_axes, *, space):
        return self.bind(operands[0], space=space), batch_axes[0]


to_memory_p = ToMemory()


def to_memory(x: Any, space: MemorySpace) -> Any:
    """`x` in a memory of its device."""
    aval = getattr(x, "aval", None)
    return x if aval is not None and aval.memory_space is space else to_memory_p.bind(x, space=space)
