"""Lowerings that are written with MLIR's Python bindings instead of purax's text builder, as third parties have them.

The rule runs in a module of its own; the function that it emits is printed and becomes a function of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from purax.core.avals import ShapedArray
from purax.xla import jaxlib_api
from purax.xla.stablehlo import Builder, Value, tensor_type


@dataclass
class ModuleContext:
    """What a rule may ask about the program that it is part of."""

    platforms: tuple[str, ...]
    context: Any
    builder: Any
    backend: Any = None

    def add_keepalive(self, keepalive: Any) -> None:
        """Nothing to do: a program keeps the callbacks that it calls."""


@dataclass
class LoweringRuleContext:
    """What a rule gets besides the operands.

    Attributes:
        module_context: the platform and MLIR's context.
        primitive: the operation that is lowered.
        avals_in, avals_out: the types of its operands and results.
    """

    module_context: ModuleContext
    primitive: Any
    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    platforms: tuple[str, ...] = ()
    tokens_in: Any = None
    axis_size_env: dict[Any, Any] = field(default_factory=dict)

    def replace(self, **changes: Any) -> LoweringRuleContext:
        return LoweringRuleContext(**{**self.__dict__, **changes})


def lower_by_mlir(
    builder: Builder,
    rule: Callable[..., Any],
    primitive: Any,
    operands: Sequence[Value],
    out_avals: Sequence[ShapedArray],
    params: dict[str, Any],
) -> list[Value]:
    """Emits what `rule(context, *mlir_values, **params)` emits, as a call."""
    module = builder.module
    name = module.unique_name(primitive.name)
    module.names["foreign", name] = name
    avals = [x.aval for x in operands]

    def body(context: Any, arguments: Sequence[Any]) -> list[Any]:
        platforms = (builder.platform,)
        rule_context = LoweringRuleContext(
            ModuleContext(platforms, context, builder), primitive, avals, list(out_avals), platforms
        )
        return _flat(rule(rule_context, *arguments, **params))

    text = jaxlib_api.function_text(
        name, list(map(tensor_type, avals)), list(map(tensor_type, out_avals)), body
    )
    module.functions.append(text)
    return builder.call(name, operands, out_avals)


def _flat(results: Any) -> list[Any]:
    """The values that a rule returned: one, an operation, or nested sequences of them."""
    if isinstance(results, list | tuple):
        return [value for item in results for value in _flat(item)]
    found = getattr(results, "results", None)
    return list(found) if found is not None and not hasattr(results, "owner") else [results]
