"""Parts of a program that become functions of the module, so that XLA neither repeats nor merges them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from purax.core.avals import ShapedArray
from purax.xla.stablehlo import Builder, Value


def outlined(
    builder: Builder,
    name: str,
    operands: Sequence[Value],
    result: ShapedArray,
    static: Hashable,
    body: Callable[..., Value],
    alone: bool = False,
) -> Value:
    """`body(builder, *operands)` as a function of its own, for all uses with equal operand types and `static`.

    Without the call, XLA would repeat what it computes in everything that reads a part of it.

    Args:
        name: of the function.
        operands: its operands.
        result: its type.
        static: what else it depends on.
        body: emits it.
        alone: whether it stays a call though it be called once, so that its operands lie in memory.
    """
    module = builder.module
    if module.dimensions is not None:  # whose values only the function around has
        return body(builder, *operands)
    key = (name, static, *(x.aval for x in operands))
    if key not in module.names:
        module.names[key] = module.unique_name(name)
        module.function(
            module.names[key], [x.aval for x in operands], lambda inner, *inputs: [body(inner, *inputs)]
        )
    return builder.call(module.names[key], operands, [result], alone=alone)[0]
