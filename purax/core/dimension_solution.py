"""Values of dimension variables from the shapes of arguments: what `(b, 2*s + b)` says of an array of shape (3, 7).

A dimension in which one variable is not known yet, and stands by itself, gives that variable (`Step`). All others, and
the constraints of the scope, are then required (`Requirement`): values that break one are refused, with the argument
and the requirement. Both are data, for values that are numbers, dimensions of another scope, or values of a program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from purax.core.dimension_facts import SymbolicScope
from purax.core.dimensions import Atom, DimSize, SymbolicDimension, made, polynomial, substitute, variables_of
from purax.core.source import located


class Step(NamedTuple):
    """`variable` = (the size of axis `axis` of argument `argument` − `rest`) / `coefficient`."""

    variable: str
    argument: int
    axis: int
    coefficient: int
    rest: DimSize


class Requirement(NamedTuple):
    """`left` `relation` `right`, with the message for values that break it, in which {0}, {1} are the two sides.

    If `argument` is not None, `left` is the size of axis `axis` of that argument.
    """

    left: DimSize
    relation: str
    right: DimSize
    message: str
    argument: int | None = None
    axis: int = 0


class Solution(NamedTuple):
    """How values of all variables follow from shapes, and what is required of them."""

    steps: tuple[Step, ...]
    requirements: tuple[Requirement, ...]


def scope_of(shapes: Sequence[Sequence[DimSize]]) -> SymbolicScope | None:
    """The scope of the dimensions in some shapes; None if all of them are numbers."""
    return next((n.scope for shape in shapes for n in shape if isinstance(n, SymbolicDimension)), None)


def solve(shapes: Sequence[Sequence[DimSize]], names: Sequence[str], also: Sequence[DimSize] = ()) -> Solution:
    """How the variables in the shapes of arguments are found.

    Args:
        shapes: of the arguments.
        names: of the arguments, for messages.
        also: further dimensions whose variables must be found.

    Returns:
        The steps, in order, and what is required besides.
    """
    scope = scope_of(shapes)
    places = [
        (i, axis, n)
        for i, shape in enumerate(shapes)
        for axis, n in enumerate(shape)
        if isinstance(n, SymbolicDimension)
    ]
    wanted = sorted(set().union(*(variables_of(n) for _, _, n in places), *map(variables_of, also)))
    steps: list[Step] = []
    found: set[str] = set()
    used: set[tuple[int, int]] = set()
    while len(found) < len(wanted):
        step = next((s for i, axis, n in places if (s := _step(i, axis, n, found)) is not None), None)
        if step is None:
            missing = [name for name in wanted if name not in found]
            specification = _specification(shapes, names)
            raise located(
                ValueError,
                f"Cannot solve for values of dimension variables {{{', '.join(map(repr, missing))}}}: each "
                "variable must be found from a dimension that has only it and those before, and in which it stands "
                f"once, as in '2*b + 1'."
                f"{specification}",
            )
        steps.append(step)
        found.add(step.variable)
        if abs(step.coefficient) == 1:
            used.add((step.argument, step.axis))
    ending = _specification(shapes, names)
    requirements = []
    for i, axis, n in places:
        if (i, axis) not in used:
            where = f"{names[i]}.shape[{axis}]"
            requirements.append(
                Requirement(
                    n,
                    "==",
                    n,
                    "Input shapes do not match the polymorphic shapes specification. Found inconsistency between "
                    f"dimension size {where} (= {{0}}) and the specification '{n}' (= {{1}}).{ending}",
                    i,
                    axis,
                )
            )
    for step in steps:
        one: DimSize = made(scope, {((Atom.of(step.variable), 1),): 1})
        requirements.append(
            Requirement(
                one,
                ">=",
                1,
                "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension "
                f"variable '{step.variable}', but found {{0}}.{ending}",
            )
        )
    if scope is not None:
        for constraint in scope.constraints:
            # As it was written: in normal form an equality has been used to make it 0 == 0.
            difference: DimSize = SymbolicDimension(scope, constraint.difference)
            if not variables_of(difference) <= found:
                difference = made(scope, constraint.difference)
            relation = "==" if constraint.is_equality else ">="
            told = "equal to" if constraint.is_equality else "greater or equal to"
            text = f"Input shapes do not match the symbolic shape constraint {constraint.text}. Expected "
            if isinstance(difference, SymbolicDimension) and variables_of(difference) <= found:
                text += f"'{difference}' to be {told} 0, but found {{0}}.{ending}"
                requirements.append(Requirement(difference, relation, 0, text))
        for assumption in scope.assumptions.values():
            if variables_of(assumption.difference) <= found:
                text = (
                    f"Input shapes do not match what the function was traced for: {assumption.text}, because at "
                    f"{assumption.location} it compared the two.{ending}"
                )
                requirements.append(Requirement(assumption.difference, "!=", 0, text))
    return Solution(tuple(steps), tuple(requirements))


def _step(i: int, axis: int, n: SymbolicDimension, found: set[str]) -> Step | None:
    unknown = variables_of(n) - found
    if len(unknown) != 1:
        return None
    (name,) = unknown
    own = ((Atom.of(name), 1),)
    rest = {m: c for m, c in polynomial(n).items() if m != own}
    coefficient = polynomial(n).get(own)
    remaining = made(n.scope, rest)
    if coefficient is None or name in variables_of(remaining):
        return None
    return Step(name, i, axis, coefficient, remaining)


def _specification(shapes: Sequence[Sequence[DimSize]], names: Sequence[str]) -> str:
    listed = "; ".join(
        f"{name}.shape = ({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        for name, shape in zip(names, shapes, strict=True)
        if any(isinstance(n, SymbolicDimension) for n in shape)
    )
    return f" Using the following polymorphic shapes specifications: {listed}."


def find(solution: Solution, given: Sequence[Sequence[DimSize]]) -> dict[str, DimSize]:
    """The values of the variables for shapes that were given; ValueError if these break a requirement."""
    values: dict[str, DimSize] = {}
    for step in solution.steps:
        size = given[step.argument][step.axis]
        quotient, rest = divmod(size - substitute(step.rest, values), step.coefficient)
        if rest != 0:
            raise located(
                ValueError,
                "Input shapes do not match the polymorphic shapes specification. Division had remainder "
                f"{rest} when computing the value of '{step.variable}' from the dimension size {size}.",
            )
        values[step.variable] = quotient
    for requirement in solution.requirements:
        check(requirement, values, given)
    return values


def check(requirement: Requirement, values: Mapping[str, DimSize], given: Sequence[Sequence[DimSize]]) -> None:
    """Raises ValueError if values of variables break a requirement."""
    left, right = substitute(requirement.left, values), substitute(requirement.right, values)
    if requirement.argument is not None:
        left = given[requirement.argument][requirement.axis]
    if requirement.relation == "==":
        holds = left == right
    elif requirement.relation == ">=":
        holds = left >= right
    else:
        holds = left != right
    if not holds:
        raise located(ValueError, requirement.message.replace("{0}", str(left)).replace("{1}", str(right)))
