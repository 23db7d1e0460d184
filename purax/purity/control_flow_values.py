"""Values that branches and loops leave behind: what is known of them, and what they become when branches meet.

A variable may hold any tree of arrays. Leaves that are the same on both sides stay as they are, concrete ones too;
others become results of the recorded branch. A variable that is not of one type becomes `Undefined`, and only reading
it is an error, which tells what it is on either side.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from purax.control_flow.branches import bind_branches, blank
from purax.control_flow.programs import as_type, with_result_types
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.trace import Tracer, current
from purax.transforms.arguments import to_array
from purax.transforms.staging import stage
from purax.tree_nodes import register_pytree_node
from purax.tree_registry import tree_flatten, tree_unflatten

_ARRAYS = (Array, np.ndarray, np.generic, bool, int, float, complex)
_NUMBERS = (bool, int, float, complex, str, bytes, type(None))


class Undefined:
    """Stands for a variable that has no value, or not one of one type; whatever is done with it raises."""

    __slots__ = ("_message", "is_plain")

    def __init__(self, message: str, is_plain: bool = True):
        self._message = message
        self.is_plain = is_plain  # whether there is nothing more to say of a loop that gives it a value

    def fail(self, *args, **kwargs):
        raise source.with_location(UnboundLocalError(self._message))

    __getattr__ = __call__ = __bool__ = __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = fail
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = fail
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __neg__ = __pos__ = __abs__ = __invert__ = (
        fail
    )
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = fail
    __float__ = __int__ = __complex__ = __index__ = __str__ = __format__ = fail

    def __repr__(self) -> str:
        return f"<undefined: {object.__getattribute__(self, '_message')}>"


class Partly(Undefined):
    """A variable that one of two branches assigned, and the `Maybe` that it is.

    Reading it is an error right after the branches. Under another condition, as in `if c: y = 1` and `if c: return y`,
    it may well have a value; then that is checked when the program runs.
    """

    __slots__ = ("depth", "maybe")

    def __init__(self, message: str, maybe: Any):
        super().__init__(message)
        self.maybe = maybe
        self.depth = blocks.depth

    def is_read_further_in(self) -> bool:
        return blocks.depth > self.depth


class _Blocks(threading.local):
    """How many blocks are being recorded, one in the other."""

    depth = 0


blocks = _Blocks()


def is_array(x: Any) -> bool:
    """Whether a leaf can be a result of a program."""
    return isinstance(x, _ARRAYS)


def is_traced(x: Any) -> bool:
    """Whether a value is not known while the function is being transformed."""
    return isinstance(x, Tracer) and x.concrete_or_none() is None


def type_text(value: Any) -> str:
    """How messages call the type of a value: `float32[3]`, `(float32[], None)`, `undefined`."""
    if isinstance(value, Undefined):
        return "undefined"
    if isinstance(value, (Array, Inner)):
        shape = ",".join(map(str, value.aval.shape))
        return f"{dtypes.dtype_name(value.aval.dtype)}[{shape}]"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if type(value) in (tuple, list):
        inner = ", ".join(map(type_text, value))
        return f"({inner})" if type(value) is tuple else f"[{inner}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {type_text(x)}" for key, x in value.items()) + "}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def way_out(one: Any, other: Any) -> str:
    """What to write instead of a list or a dict that grows under a traced condition, if that is the matter."""
    if type(one) is list and type(other) is list and len(one) != len(other):
        return (
            ". The length of a list cannot depend on a traced value: make an array of the largest length first, "
            "`out = jnp.zeros(n)`, write to it, `out = out.at[i].set(value)`, and count"
        )
    if type(one) is dict and type(other) is dict and one.keys() != other.keys():
        return ". The keys of a dict cannot depend on a traced value: give it all of them first"
    return ""


def fresh(value: Any) -> Any:
    """A value whose containers may be changed without changing those of the original."""
    if isinstance(value, (Array, Undefined, *_NUMBERS)):
        return value
    leaves, tree = tree_flatten(value)
    if len(leaves) == 1 and leaves[0] is value:
        return value.copy() if isinstance(value, set) else value
    return tree_unflatten(tree, leaves)


def same(a: Any, b: Any) -> bool:
    """Whether two leaves are one value that need not be recorded."""
    if a is b:
        return True
    if isinstance(a, _ARRAYS) or isinstance(b, _ARRAYS):
        return type(a) is type(b) and isinstance(a, _NUMBERS) and (a == b and str(a) == str(b))
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # a comparison of the user's that does not work is no sameness
        return False


def common_type(a: ShapedArray, b: ShapedArray) -> ShapedArray | None:
    """The type that holds the values of both; None if there is none."""
    if a.shape != b.shape:
        return None
    if a.dtype != b.dtype and (dtypes.is_extended(a.dtype) or dtypes.is_extended(b.dtype)):
        return None
    dtype, weak = dtypes.promote_pair(a.dtype, a.weak_type, b.dtype, b.weak_type)
    return ShapedArray(a.shape, dtype, weak)


class Maybe:
    """A variable that has a value if a traced flag says so, as one that a loop assigns; reading it is a check.

    It is a tree of the value and the flag.
    """

    __slots__ = ("flag", "message", "value")

    def __init__(self, value: Any, flag: Any, message: str):
        self.value, self.flag, self.message = value, flag, message


register_pytree_node(
    Maybe, lambda x: ((x.value, x.flag), x.message), lambda message, parts: Maybe(parts[0], parts[1], message)
)


class Inner:
    """A value that exists only in a block that was recorded: its type is all that is left of it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval


class Recorded:
    """A block that was recorded: its program, and for each of its values the tree, the leaves and their results.

    Attributes:
        values: what the block returned, with `Inner` in the place of what it computed.
        parts: for each value None if it is undefined, or (tree, leaves, positions among the results of the program;
            None for leaves that are no arrays).
    """

    def __init__(self, block: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray], name: str):
        self.values: list[Any] = []
        self.parts: list[Any] = []

        def flat(*arguments):
            results: list[Any] = []
            for value in block(*arguments):
                if isinstance(value, Partly):
                    value = object.__getattribute__(value, "maybe")
                if isinstance(value, Undefined):
                    self.values.append(value)
                    self.parts.append(None)
                    continue
                leaves, tree = tree_flatten(value)
                positions: list[int | None] = []
                for leaf in leaves:
                    positions.append(len(results) if is_array(leaf) else None)
                    if is_array(leaf):
                        results.append(leaf if isinstance(leaf, Array) else to_array(leaf))
                here = current.trace
                leaves = [Inner(x.aval) if isinstance(x, Tracer) and x.owner is here else x for x in leaves]
                self.values.append(tree_unflatten(tree, leaves))
                self.parts.append((tree, leaves, positions))
            return results

        blocks.depth += 1
        try:
            self.closed = stage(flat, avals, name)
        finally:
            blocks.depth -= 1

    def type_of(self, position: Any) -> ShapedArray:
        return aval_of(True) if position is HOLDS else self.closed.out_avals[position]

    def as_maybe(self, i: int, message: str) -> Any:
        """The parts of a value, which is known to be there, for meeting one that may not be."""
        tree, leaves, positions = self.parts[i]
        wrapped, outer = tree_flatten(Maybe(tree_unflatten(tree, leaves), True, message))
        return outer, wrapped, [*positions, HOLDS]


HOLDS = object()  # in the place of a result: True


class Unlike(Exception):
    """A value is not of one type on both sides."""


class Meeting:
    """Two recorded blocks, of which one will run; finds the values that hold after either."""

    def __init__(
        self,
        blocks: Sequence[Recorded],
        labels: Sequence[str],
        condition: str,
        unread: Sequence[set[str]] = (set(), set()),
        live: Collection[str] = (),
    ):
        """`unread` are the labels of variables that nobody reads after the one block, and after the other; `live` of
        those that may be read after both.
        """
        self.live = live
        self.blocks = blocks
        self.labels = labels
        self.condition = condition
        self.unread = unread
        self.wanted: list[ShapedArray] = []
        self.slots: list[tuple[Any, Any]] = []
        self.values = [self.meet(label, i) for i, label in enumerate(labels)]

    def meet(self, label: str, i: int) -> Any:
        """The value of a variable after the blocks: a tree with `Slot`s where results will stand."""
        one, other = self.blocks[0].parts[i], self.blocks[1].parts[i]
        values = [block.values[i] for block in self.blocks]
        if (
            isinstance(values[0], Maybe) != isinstance(values[1], Maybe)
            and one is not None
            and other is not None
        ):
            one, other = (
                part if isinstance(value, Maybe) else block.as_maybe(i, values[1 - side].message)
                for side, (part, value, block) in enumerate(
                    zip((one, other), values, self.blocks, strict=True)
                )
            )
        if one is None and other is None:
            return values[0]
        if one is not None and other is not None:
            with contextlib.suppress(Unlike):
                return self.alike(one, other)
        for side, part in ((0, other), (1, one)):
            if label in self.unread[side] and part is not None:
                return self.filled(part, 1 - side)
        return self.unlike(label, values)

    def alike(self, one: Any, other: Any) -> Any:
        """The value of a variable that is of one type on both sides."""
        if one[0] != other[0]:
            raise Unlike
        met = []
        count = len(self.slots)
        for a, b, p, q in zip(one[1], other[1], one[2], other[2], strict=True):
            if same(a, b):
                met.append(a)
                continue
            aval = (
                None
                if p is None or q is None
                else common_type(self.blocks[0].type_of(p), self.blocks[1].type_of(q))
            )
            if aval is None:
                del self.slots[count:], self.wanted[count:]
                raise Unlike
            met.append(self.slot(p, q, aval))
        return tree_unflatten(one[0], met)

    def filled(self, part: Any, side: int) -> Any:
        """The value of a variable that matters only after the block on one side."""
        tree, leaves, positions = part
        filled = []
        for leaf, position in zip(leaves, positions, strict=True):
            if position is not None and (isinstance(leaf, Inner) or position is HOLDS):
                first, second = (position, None) if side == 0 else (None, position)
                leaf = self.slot(first, second, self.blocks[side].type_of(position))
            filled.append(leaf)
        return tree_unflatten(tree, filled)

    def unlike(self, label: str, values: Sequence[Any]) -> Undefined:
        one, other = (type_text(value) for value in values)
        message = f"{label} is {one} if {self.condition} and {other} otherwise{way_out(*values)}"
        sides = [i for i, value in enumerate(values) if not isinstance(value, Undefined)]
        if len(sides) == 1 and label in self.live:
            [side] = sides
            tree, leaves, positions = self.blocks[side].parts[self.labels.index(label)]
            if not isinstance(values[side], Maybe):
                part = self.blocks[side].as_maybe(self.labels.index(label), message)
            else:
                part = tree, leaves, positions
            return Partly(message, self.filled(part, side))
        return Undefined(message)

    def slot(self, p: Any, q: Any, aval: ShapedArray) -> Slot:
        self.slots.append((p, q))
        self.wanted.append(aval)
        return Slot(len(self.slots) - 1)

    def run(self, index: Any) -> list[Any]:
        """Records the branch; `index` is 1 where the first block is to run."""
        programs = [self.program(side) for side in (1, 0)]
        results: Sequence[Any] = ()
        if self.wanted or any(program.effects for program in programs):
            results = bind_branches(index, programs, [])
        return [fill(value, results) for value in self.values]

    def program(self, side: int) -> ClosedJaxpr:
        """A block with the results that are wanted, in the types that are wanted."""
        closed = self.blocks[side].closed
        positions = [slot[side] for slot in self.slots]
        if all(isinstance(p, int) for p in positions):
            selected = closed.jaxpr.replace(outvars=[closed.jaxpr.outvars[p] for p in positions])
            return with_result_types(ClosedJaxpr(selected, closed.consts), self.wanted)

        def filled():
            results = eval_jaxpr(closed.jaxpr, closed.consts)
            return [
                blank(aval) if p is None else typed(True if p is HOLDS else results[p], aval)
                for p, aval in zip(positions, self.wanted, strict=True)
            ]

        return stage(filled, [], closed.jaxpr.name)


class Slot:
    """The place of a result in a tree."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


def fill(value: Any, results: Sequence[Any]) -> Any:
    if isinstance(value, Partly):
        return Partly(value._message, fill(value.maybe, results))
    if isinstance(value, Undefined):
        return value
    leaves, tree = tree_flatten(value)
    return tree_unflatten(tree, [results[x.number] if type(x) is Slot else x for x in leaves])


def typed(x: Any, aval: ShapedArray) -> Any:
    """A value as an array of a type."""
    return as_type(x if isinstance(x, Array) else to_array(x), aval)


def array_type(x: Any) -> ShapedArray:
    return aval_of(x) if isinstance(x, Array) else to_array(x).aval
