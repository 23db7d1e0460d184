"""`jax.experimental.hijax`: values of types that a library defines, made of arrays.

A value of such a type is a cell (`purax.references.cells`) or, if it cannot be written, a bundle of arrays: a
transformed
function works on an object of the library's own class that holds traced arrays. So its operations run as they are
written, on arrays, and nothing of these types is left in programs.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from purax.compat.modules.ad import is_undefined_primal
from purax.control_flow.custom_jvp import custom_jvp
from purax.control_flow.custom_vjp import custom_vjp
from purax.core.avals import ShapedArray, Zero
from purax.core.exact import exact_items
from purax.core.source import located
from purax.core.trace import Trace, current, eager_trace
from purax.interpreters.staging import StagingTrace
from purax.primitives.shape.broadcasting import materialize as instantiate_zeros
from purax.ref import AbstractRef, Part, Ref
from purax.references import cells
from purax.scopes import scoped
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrim",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MappingSpec",
    "MutableHiType",
    "ShapedArray",
    "TransformedRef",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "cur_qdd",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]

AbstractValue = object
TransformedRef = Part


class _EffectTypes(set):
    """Types of effects that are allowed somewhere."""

    def add_type(self, kind: type) -> None:
        self.add(kind)


control_flow_allowed_effects = _EffectTypes()


class MappingSpec:
    """How a value of a user-defined type is vectorized; libraries derive from it."""


class HiPspec:
    """How a value of a user-defined type is sharded over a mesh; libraries derive from it."""


class HiType:
    """A type of values that cannot be written. A library's type says which arrays a value is made of."""

    is_high = True
    has_qdd = False

    def lo_ty(self) -> list[Any]:
        """The types of the arrays that a value is made of."""
        raise NotImplementedError(f"{type(self).__name__} does not define lo_ty")

    def lower_val(self, hi_val: Any) -> list[Any]:
        """The arrays that a value is made of."""
        raise NotImplementedError(f"{type(self).__name__} does not define lower_val")

    def raise_val(self, *lo_vals: Any) -> Any:
        """The value that is made of these arrays."""
        raise NotImplementedError(f"{type(self).__name__} does not define raise_val")

    def str_short(self, short_dtypes: bool = False, **_: Any) -> str:
        return type(self).__name__


class MutableHiType(HiType):
    """A type of values that can be written; `state` describes what a value holds at some moment."""

    has_qdd = True

    def lo_ty_qdd(self, state: Any) -> list[Any]:
        """The types of the arrays that a value holds."""
        raise NotImplementedError(f"{type(self).__name__} does not define lo_ty_qdd")

    def new_from_loval(self, state: Any, *vals: Any) -> Any:
        """A new value that holds these arrays."""
        raise NotImplementedError(f"{type(self).__name__} does not define new_from_loval")

    def read_loval(self, state: Any, val: Any) -> list[Any]:
        """The arrays that a value holds."""
        raise NotImplementedError(f"{type(self).__name__} does not define read_loval")

    def update_from_loval(self, state: Any, val: Any, *lo_vals: Any) -> None:
        """Makes a value hold other arrays."""
        raise NotImplementedError(f"{type(self).__name__} does not define update_from_loval")


class AvalQDD:
    """A type and what is known of the value besides."""

    def __init__(self, aval: Any, qdd: Any):
        self.aval, self.qdd = aval, qdd


class AvalMutableQDD:
    """A type and what is known of the value besides, which changes."""

    def __init__(self, aval: Any, mutable_qdd: Any):
        self.aval, self.mutable_qdd = aval, mutable_qdd


class aval_property(property):
    """A property of values that is one of their type."""

    @property
    def fun(self) -> Any:
        return self.fget


class aval_method:
    """A method of values that is one of their type."""

    def __init__(self, fun: Callable):
        self.fun = fun


def cur_qdd(x: Any) -> Any:
    """What a value of a user-defined type that can be written holds now."""
    state = x.cur_qdd
    return state() if callable(state) else state


class _Direct(threading.local):
    depth = 0


_direct = _Direct()


@scoped
def _directly():
    """While the parts of a value are read or set, operations on it do just that."""
    _direct.depth += 1
    try:
        yield
    finally:
        _direct.depth -= 1


class HiKind(cells.Kind):
    """Values of a user-defined type as cells. References among what a value is made of are opened, too.

    A structure is (type, state, for each part whether it is a reference).
    """

    is_differentiated = True
    # The homes of values made inside of a transformation, with the values, so that an `id` is not used again.
    _homes: dict[int, tuple[Any, Trace]] = {}  # noqa: RUF012

    def __init__(self, typeof: Callable[[Any], Any]):
        self.typeof = typeof

    def _state(self, cell: Any) -> tuple[Any, Any]:
        aval = self.typeof(cell)
        return aval, cur_qdd(cell) if isinstance(aval, MutableHiType) else None

    def _parts(self, cell: Any) -> list[Any]:
        with _directly():
            aval, state = self._state(cell)
            return list(aval.lower_val(cell) if state is None else aval.read_loval(state, cell))

    def structure(self, cell: Any) -> Any:
        return (*self._state(cell), tuple(isinstance(x, Ref) for x in self._parts(cell)))

    def contents(self, cell: Any) -> list[Any]:
        return [cells.read(x)[0] if isinstance(x, Ref) else x for x in self._parts(cell)]

    def make(self, structure: Any, arrays: Sequence[Any]) -> Any:
        aval, state, is_ref = structure
        parts = [Ref(x) if r else x for x, r in zip(arrays, is_ref, strict=True)]
        with _directly():
            cell = aval.raise_val(*parts) if state is None else aval.new_from_loval(state, *parts)
        self.settle(cell, current.trace)
        return cell

    def update(self, cell: Any, structure: Any, arrays: Sequence[Any]) -> None:
        aval, state, is_ref = structure
        parts = self._parts(cell)
        if len(parts) != len(arrays):
            parts = [None] * len(arrays)
        new = []
        for old, x, r in zip(parts, arrays, is_ref, strict=True):
            if r and isinstance(old, Ref):
                old._value = x
                new.append(old)
            else:
                new.append(Ref(x) if r else x)
        changed = any(x is not y for x, y in zip(new, parts, strict=True))
        if changed and state is not None:
            with _directly():
                aval.update_from_loval(state, cell, *new)

    def home(self, cell: Any) -> Trace:
        entry = self._homes.get(id(cell))
        return eager_trace() if entry is None else entry[1]

    def settle(self, cell: Any, home: Trace) -> None:
        for key in [key for key, (_, trace) in self._homes.items() if not trace.alive]:
            del self._homes[key]
        if home is eager_trace():
            self._homes.pop(id(cell), None)
        else:
            self._homes[id(cell)] = cell, home
        for x in self._parts(cell):
            if isinstance(x, Ref):
                x._home = home

    def type_of(self, cell: Any) -> Any:
        return self.typeof(cell)

    def abstract(self, structure: Any, shapes: Sequence[Any]) -> Any:
        return structure[0]


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Says what the type of values of a Python class is, which makes them usable in transformed functions.

    Args:
        val_cls: the class.
        typeof_fn: from a value to its `HiType` or `MutableHiType`.
    """
    cells.register(val_cls, HiKind(typeof_fn))


def _run(function: Callable, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Runs an operation on values of user-defined types, of which some may be from outside of a recorded function."""
    if _direct.depth:
        return function(*operands, **params)
    given = [(x, cells.kind_of(x)) for x in operands]
    for x, kind in given:
        if kind is not None:
            cells.reach(x, kind)
    result = function(*operands, **params)
    for x, kind in given:
        if kind is not None:
            held = kind.contents(x)
            settled = cells.for_home(x, kind, held)
            if any(new is not old for new, old in zip(settled, held, strict=True)):
                if isinstance(kind, HiKind) and not isinstance(kind.typeof(x), MutableHiType):
                    raise located(
                        ValueError,
                        f"a {type(x).__name__} was written inside of a transformation, which its type does not "
                        "allow. Return the new value, or make it one that can be written (in Flax: `ref=True`).",
                    )
                kind.update(x, kind.structure(x), settled)
    for x in tree_flatten(result)[0]:
        kind = cells.kind_of(x)
        if isinstance(kind, HiKind) and not any(x is y for y, _ in given):
            kind.settle(x, current.trace)
    return result


class HiPrimitive:
    """An operation on values of user-defined types; libraries define `to_lojax` or `impl`, in terms of arrays.

    Args:
        name: of the operation.
    """

    multiple_results = False

    def __init__(self, name: str):
        self.name = name

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Runs the operation."""
        is_defined = type(self).to_lojax is not HiPrimitive.to_lojax
        return _run(self.to_lojax if is_defined else self.impl, operands, params)

    def to_lojax(self, *operands: Any, **params: Any) -> Any:
        """The operation in terms of arrays."""
        raise NotImplementedError(f"the primitive `{self.name}` does not define to_lojax")

    def impl(self, *operands: Any, **params: Any) -> Any:
        """The operation on concrete values."""
        raise NotImplementedError(f"the primitive `{self.name}` does not define impl")

    def __repr__(self) -> str:
        return self.name


class VJPHiPrimitive:
    """An operation with derivatives of its own: `expand` says what it computes, and `vjp_fwd` with `vjp_bwd_retval`,
    or `jvp`, how it is differentiated. Libraries derive from it and set `in_avals`, `out_aval` and `params`.
    """

    in_avals: tuple[Any, ...] = ()
    out_aval: Any = None
    params: dict[str, Any] = {}  # noqa: RUF012
    effects: frozenset[Any] = frozenset()

    def __init__(self) -> None:
        self.__dict__.update(self.params)

    def expand(self, *args: Any) -> Any:
        """What the operation computes."""
        raise NotImplementedError(f"{type(self).__name__} does not define expand")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        """The result, and what the backward pass needs."""
        raise NotImplementedError(f"for reverse mode {type(self).__name__} must define vjp_fwd")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """The cotangents of the arguments."""
        raise NotImplementedError(f"for reverse mode {type(self).__name__} must define vjp_bwd_retval")

    def staging(self, trace: Any, source_info: Any, *args: Any) -> Any:
        """What the operation does in a function that is recorded: what it does anyway, unless a library refuses."""
        return self.expand(*args)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """The result and its tangent."""
        raise NotImplementedError(f"for forward mode {type(self).__name__} must define jvp")

    def __call__(self, *args: Any) -> Any:
        leaves, _ = tree_flatten(args)
        results, _ = tree_flatten(self.out_aval)
        if _direct.depth or cells.has_cells(leaves) or any(isinstance(x, HiType) for x in results):
            is_recorded = not _direct.depth and isinstance(current.trace, StagingTrace)
            run = functools.partial(self.staging, current.trace, None) if is_recorded else self.expand
            return _run(run, args, {})
        kind = type(self)
        if (
            kind.vjp_fwd is not VJPHiPrimitive.vjp_fwd
            and kind.vjp_bwd_retval is not VJPHiPrimitive.vjp_bwd_retval
        ):
            return self._with_vjp()(*args)
        if kind.jvp is not VJPHiPrimitive.jvp:
            return self._with_jvp()(*args)
        return _run(self.expand, args, {})

    def _with_vjp(self) -> Callable:
        function = custom_vjp(lambda *args: _run(self.expand, args, {}))

        def forward(*args):
            leaves, tree = tree_flatten(args)
            return self.vjp_fwd(tree_unflatten(tree, [True] * len(leaves)), *args)

        function.defvjp(
            forward, lambda residuals, cotangent: tuple(self.vjp_bwd_retval(residuals, cotangent))
        )
        return function

    def _with_jvp(self) -> Callable:
        function = custom_jvp(lambda *args: _run(self.expand, args, {}))
        function.defjvp(lambda primals, tangents: self.jvp(primals, tangents))
        return function

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> Any:
        return type(self), self.in_avals, frozenset(exact_items(self.params))

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()


HiPrim = VJPHiPrimitive
