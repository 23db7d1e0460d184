"""Programs with symbolic shapes as StableHLO: lowered with dynamic dimensions, and refined for sizes.

`main` of such a module computes the dimension variables from the shapes of its arguments, and asserts what was said of
them (calls of `shape_assertion`). XLA compiles it when all shapes are known (`PortableModule.refined`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from purax.core.avals import ShapedArray
from purax.core.dimension_solution import Requirement, Solution
from purax.core.dimensions import DimSize, substitute
from purax.core.jaxpr import ClosedJaxpr
from purax.lowering.jaxpr_to_stablehlo import lower_body
from purax.xla.dynamic_shapes import SCALAR, dimension_size
from purax.xla.stablehlo import Builder, Module, Value


def lower_symbolic(
    closed: ClosedJaxpr, platform: str, solution: Solution, debug_info: bool = False
) -> Module:
    """The module of a program without constants, whose variables follow from its arguments as `solution` says."""
    module = Module(platform, keep_calls=False)
    module.debug_info = debug_info

    def body(builder: Builder, *arguments: Value) -> Sequence[Value]:
        variables: dict[str, Value] = {}
        module.dimensions = variables
        for step in solution.steps:
            size = dimension_size(builder, arguments[step.argument], step.axis)
            rest = builder.dimension(-step.rest)
            value = builder.op("add", (size, rest), SCALAR)
            if step.coefficient != 1:
                value = builder.op("divide", (value, builder.constant(step.coefficient, SCALAR)), SCALAR)
            variables[step.variable] = value
        for requirement in solution.requirements:
            _assert(builder, requirement, arguments)
        return lower_body(builder, closed.jaxpr, arguments)

    module.function("main", list(closed.in_avals), body, True)
    return module


def written_at(module: Module, line: int) -> str:
    """Which operation, at which line of the user's, wrote a line of a module's text with `debug_info`."""
    text = module.text().split("\n")[line - 1]
    found = re.search(r' loc\("([^"]*)"(?:\("([^"]*)":(\d+):0\))?\)$', text)
    if found is None:
        return "an operation"
    return f"`{found[1]}`" + (f" at {found[2]}:{found[3]}" if found[2] else "")


_DIRECTIONS = {"==": "EQ", ">=": "GE", "!=": "NE"}


def _assert(builder: Builder, requirement: Requirement, arguments: Sequence[Value]) -> None:
    left, right = builder.dimension(requirement.left), builder.dimension(requirement.right)
    if requirement.argument is not None:
        left = dimension_size(builder, arguments[requirement.argument], requirement.axis)
    holds = builder.compare(_DIRECTIONS[requirement.relation], left, right)
    message = json.dumps(requirement.message, ensure_ascii=False)
    told = 'call_target_name = "shape_assertion", api_version = 2 : i32, backend_config = "", has_side_effect = true'
    builder.op("custom_call", (holds, left, right), [], told, discardable=f"error_message = {message}")


def with_sizes(aval: ShapedArray, sizes: dict[str, DimSize]) -> ShapedArray:
    """A type for values of its dimension variables."""
    return aval.with_shape(tuple([substitute(n, sizes) for n in aval.shape]))
