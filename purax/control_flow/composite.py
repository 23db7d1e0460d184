"""`composite`: an operation with a name that the compiler may know better than the program that defines it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.control_flow.bodies import arrays_in, stage_tree
from purax.core import source
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.jaxpr import eval_jaxpr
from purax.core.jaxpr_hash import fingerprint
from purax.errors import shown
from purax.execution import compiled_program
from purax.interpreters.program_rules import ProgramCall
from purax.interpreters.simplify import hoist_constants
from purax.lowering import jaxpr_to_stablehlo
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla.stablehlo import scalar_text, tensor_type


class Composite(ProgramCall):
    """A call of `jaxpr` under a `name` and a `version`, with `attributes` (pairs of a name and StableHLO text).

    Its derivatives, its transpose and its batched form are those of the program, without the name.
    """

    name = "composite"

    def run(self, *operands, jaxpr, name, version, attributes):
        return compiled_program.run(jaxpr, operands)

    def lower(self, builder, *operands, jaxpr, name, version, attributes):
        module = builder.module
        if module.dimensions is not None:  # whose values only the function around has
            return jaxpr_to_stablehlo.lower_body(builder, jaxpr.jaxpr, operands)
        key = ("composite", fingerprint(jaxpr))
        function = module.names.get(key)
        if function is None:
            function = module.names[key] = module.unique_name(f"{name}_implementation")
            module.function(
                function,
                [v.aval for v in jaxpr.jaxpr.invars],
                lambda inner, *args: jaxpr_to_stablehlo.lower_body(inner, jaxpr.jaxpr, args),
            )
        fields = ", ".join(f"{key} = {text}" for key, text in attributes)
        text = (
            f"name = {json.dumps(name)}, composite_attributes = {{{fields}}}, decomposition = @{function}, "
            f"version = {version} : i32"
        )
        return builder.op("composite", operands, list(jaxpr.out_avals), text)

    def call(self, closed, operands, params, role=""):
        return eval_jaxpr(closed.jaxpr, closed.consts, *operands)


composite_p = Composite()


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A function that is one operation in compiled programs, with a name that compilers may recognize.

    Args:
        decomposition: what the operation means. Its positional arguments are operands, its keywords attributes.
        name: of the operation, such as "my.softmax".
        version: of its meaning.

    Returns:
        The function. Attributes that are None are left out of the operation.

    >>> import purax as px, purax.numpy as jnp
    >>> tangent = px.lax.composite(lambda x: jnp.sin(x) / jnp.cos(x), "my.tangent")
    >>> px.jit(tangent)(0.5)
    Array(0.5463025, dtype=float32, weak_type=True)
    """
    if not callable(decomposition):
        raise source.located(
            TypeError, f"composite: decomposition must be a function, got {shown(decomposition)}"
        )
    if not isinstance(name, str) or not name:
        raise source.located(TypeError, f"composite: name must be a string, got {shown(name)}")

    def composed(*args: Any, **attributes: Any) -> Any:
        leaves, tree = tree_flatten(args)
        values = arrays_in(leaves, tree, f"composite {name}: arguments")

        def function(*xs):
            return decomposition(*xs, **attributes)

        function.__name__ = getattr(decomposition, "__name__", "decomposition")
        closed, out_tree = stage_tree(function, tree, [x.aval for x in values], f"composite {name}")
        try:
            texts = tuple((key, attribute_text(x)) for key, x in attributes.items() if x is not None)
        except RecursionError:
            raise source.located(
                ValueError, f"composite {name!r}: an attribute is nested too deeply"
            ) from None
        results = composite_p.bind(
            *closed.consts,
            *values,
            jaxpr=hoist_constants(closed),
            name=name,
            version=int(version),
            attributes=texts,
        )
        return tree_unflatten(out_tree, results)

    return composed


def attribute_text(value: Any) -> str:
    """A Python value as an attribute of a StableHLO operation."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{scalar_text(value, np.dtype(np.float64))} : f64"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, (np.ndarray, np.generic, Array)):
        array = np.asarray(value)
        aval = ShapedArray(array.shape, array.dtype)
        elements = ", ".join(scalar_text(x, array.dtype) for x in array.ravel())
        if array.ndim == 0:
            return f"dense<{elements}> : {tensor_type(aval)}"
        flat = tensor_type(ShapedArray((array.size,), array.dtype))
        text = f"dense<[{elements}]> : {flat}" if array.size else f"dense<> : {tensor_type(aval)}"
        if array.ndim == 1 or not array.size:
            return text
        return f"[{text}, {attribute_text(list(array.shape))}]"
    raise source.located(
        TypeError,
        f"composite: attributes are numbers, strings, arrays or lists of them, got {shown(value)} of type "
        f"{type(value).__name__}",
    )
