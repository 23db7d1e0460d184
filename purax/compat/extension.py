"""Operations that others add, in jax's manner: a primitive is made by name and its rules are registered one by one.

Each registration becomes a rule of purax's contract (`purax.core.primitive`), whose conventions are the same: `jvp`
takes primals and tangents with symbolic zeros, `transpose` gets a stand-in for each linear operand, `batch` gets the
positions of batch axes. So a primitive of a third party is one like all others, and the tables of rules can also be
read, and overridden, for purax's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, NamedTuple

from purax import errors
from purax.core.avals import ShapedArray, aval_of
from purax.core.primitive import Primitive as Contract
from purax.execution import compiled_program, eager
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import stage
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.shape.broadcasting import batch_size, move_axis
from purax.xla.foreign_mlir import lower_by_mlir


class _AllPrimitives(type):
    """Of `Primitive`: whoever asks whether something is one means purax's own operations, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Contract)


class Primitive(Contract, metaclass=_AllPrimitives):
    """An operation whose rules are registered after it was made, as `jax.extend.core.Primitive`.

    Args:
        name: as printed in programs.

    >>> from purax.compat.extension import Primitive
    >>> from purax.core.avals import ShapedArray
    >>> import purax as px, purax.numpy as jnp
    >>> twice_p = Primitive("twice")
    >>> _ = twice_p.def_impl(lambda x: 2 * x)
    >>> _ = twice_p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    >>> twice_p.bind(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    >>> px.make_jaxpr(twice_p.bind)(1.0)
    { lambda ; a:f32[]. let b:f32[] = twice a in (b,) }
    """

    runs_itself = True
    may_be_opened = True
    call_primitive = False
    map_primitive = False

    def __init__(self, name: str):
        self.name = name
        self.impl: Callable | None = None
        self.lowerings: dict[str | None, Callable] = {}
        self._abstract_eval: Callable | None = None
        self._has_effects = False

    # -- registration

    def def_impl(self, impl: Callable) -> Callable:
        """Sets what runs the operation on concrete arrays; returns it, so that it can decorate."""
        self.impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """Sets the rule for types: from `ShapedArray`s and parameters to a `ShapedArray`, or a list of them."""
        self._abstract_eval, self._has_effects = abstract_eval, False
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable) -> Callable:
        """`def_abstract_eval` for a rule that returns types and a set of effects."""
        self._abstract_eval, self._has_effects = abstract_eval, True
        return abstract_eval

    def def_custom_bind(self, bind: Callable) -> Callable:
        """Replaces `bind`."""
        self.bind = bind
        return bind

    def abstract_eval(self, *avals: ShapedArray, **params: Any) -> Any:
        """The types of the results and the effects."""
        return self.infer(*avals, **params), self.effects(**params)

    # -- the contract

    def infer(self, *avals, **params):
        if self._abstract_eval is None:
            self.is_missing("def_abstract_eval", "infers result types of")
        result = self._abstract_eval(*avals, **params)
        result = result[0] if self._has_effects else result
        return [_as_aval(x) for x in result] if self.multiple_results else _as_aval(result)

    def run(self, *operands, **params):
        if self.impl is not None:
            return self.impl(*operands, **params)
        avals = tuple(aval_of(x) for x in operands)
        closed = stage(lambda *xs: self._results(self.bind(*xs, **params)), avals, self.name)
        return self._single(compiled_program.run(hoist_constants(closed), [*closed.consts, *operands]))

    def opened(self, avals, params):
        rule = self.lowerings.get("cpu", self.lowerings.get(None))
        if not isinstance(rule, LoweredFunction):
            return None
        return rule.program(avals, params, self._results(self.infer_checked(avals, params)), self.name)

    def lower(self, builder, *operands, **params):
        rule = self.lowerings.get(builder.platform, self.lowerings.get(None))
        if rule is None:
            raise errors.MissingRuleError(
                f"nothing compiles the primitive `{self.name}` for {builder.platform}: register a lowering, for "
                "example `mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=False))`"
            )
        avals = tuple(x.aval for x in operands)
        out_avals = self._results(self.infer_checked(avals, params))
        if isinstance(rule, LoweredFunction):
            return self._single(rule.lower(builder, operands, params, out_avals, self.name))
        return self._single(lower_by_mlir(builder, rule, self, operands, out_avals, params))

    def _results(self, results: Any) -> list[Any]:
        return list(results) if self.multiple_results else [results]

    def _single(self, results: Sequence[Any]) -> Any:
        return list(results) if self.multiple_results else results[0]

    def __reduce__(self):
        raise TypeError(f"the primitive `{self.name}` cannot be pickled: its rules are Python functions")


class LoweredFunction:
    """What `mlir.lower_fun` makes: a lowering that is the program of a Python function."""

    def __init__(self, function: Callable, multiple_results: bool):
        self.function = function
        self.multiple_results = multiple_results

    def __call__(self, *arguments: Any, **params: Any) -> Any:
        raise TypeError("a lowering made by lower_fun is registered with register_lowering, not called")

    def program(self, avals, params, out_avals, name):
        """The function for operands of certain types, as a program; its results must have the given types."""

        def flat(*arguments):
            results = self.function(*arguments, **params)
            return list(results) if self.multiple_results else [results]

        closed = stage(flat, avals, name)
        for found, wanted in zip(closed.out_avals, out_avals, strict=True):
            if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
                raise TypeError(
                    f"the lowering of the primitive `{name}` computes {found.str_short()} where its abstract "
                    f"evaluation says {wanted.str_short()}"
                )
        return closed

    def lower(self, builder, operands, params, out_avals, name):
        closed = self.program([x.aval for x in operands], params, out_avals, name)
        constants = [builder.constant(eager.as_array(c, c.aval).host_value(), c.aval) for c in closed.consts]
        return jaxpr_to_stablehlo.lower_body(builder, closed.jaxpr, [*constants, *operands])


class Rules(MutableMapping):
    """One rule of all primitives, as a table: `primitive_jvps[primitive] = rule`."""

    def __init__(self, rule: str):
        self._rule = rule
        self._registered: dict[Contract, Callable] = {}

    def __setitem__(self, primitive: Contract, rule: Callable) -> None:
        self._registered[primitive] = rule
        setattr(primitive, self._rule, rule if self._rule == "transpose" else _of_tuples(rule))

    def __getitem__(self, primitive: Contract) -> Callable:
        if primitive in self._registered:
            return self._registered[primitive]
        if getattr(type(primitive), self._rule) is getattr(Contract, self._rule):
            raise KeyError(primitive)
        return getattr(primitive, self._rule)

    def __delitem__(self, primitive: Contract) -> None:
        del self._registered[primitive]
        delattr(primitive, self._rule)

    def __contains__(self, primitive: object) -> bool:
        try:
            self[primitive]  # type: ignore[index]
        except (KeyError, AttributeError):
            return False
        return True

    def __iter__(self) -> Iterator[Contract]:
        return iter(self._registered)

    def __len__(self) -> int:
        return len(self._registered)


def _of_tuples(rule: Callable) -> Callable:
    """A rule of operands and what belongs to each; they come as tuples, whose type rules may hand on as a structure."""

    def with_tuples(operands, each, **params):
        return rule(tuple(operands), tuple(each), **params)

    return with_tuples


class AxisData(NamedTuple):
    """The batch axis, as rules of `fancy_primitive_batchers` get it."""

    name: Any
    size: int
    spmd_name: Any = None
    explicit_mesh_axis: Any = None


class AxisRules(Rules):
    """Rules of vectorization that also get the size and the name of the batch axis, in `call`'s manner."""

    def __init__(self, call: Callable):
        super().__init__("batch")
        self._call = call

    def __setitem__(self, primitive: Contract, rule: Callable) -> None:
        def collective(size, name, operands, batch_axes, **params):
            return self._call(rule, AxisData(name, size), tuple(operands), tuple(batch_axes), params)

        def batch(operands, batch_axes, **params):
            return collective(batch_size(operands, batch_axes), None, operands, batch_axes, **params)

        super().__setitem__(primitive, batch)
        rules: Any = primitive  # of which this one gets its own
        rules.batch_collective = collective
        rules.names_axis = lambda axis_name, **params: True


fancy_primitive_batchers = AxisRules(
    lambda rule, axis, operands, axes, params: rule(axis, operands, axes, **params)
)
axis_primitive_batchers = AxisRules(
    lambda rule, axis, operands, axes, params: rule(axis.size, axis.name, None, operands, axes, **params)
)
primitive_jvps = Rules("jvp")
primitive_transposes = Rules("transpose")
primitive_batchers = Rules("batch")


def register_lowering(
    prim: Contract,
    rule: Callable,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Sets how a prim is compiled.

    Args:
        prim: made by `Primitive`.
        rule: what `lower_fun` makes, or a function of a context and MLIR values that emits operations.
        platform: "cpu", "cuda", "tpu"; for all others when left out.
        inline: accepted, without effect.
        cacheable: accepted, without effect.
    """
    if Primitive not in type(prim).__mro__:
        raise TypeError(f"`{prim}` is a primitive of purax; its lowering is its `lower` rule")
    prim.lowerings[{"gpu": "cuda"}.get(platform, platform)] = rule  # type: ignore[arg-type]


def lower_fun(fun: Callable, multiple_results: bool = True) -> LoweredFunction:
    """A lowering that computes what a function of arrays does.

    Args:
        fun: called with the operands and parameters of the primitive.
        multiple_results: whether it returns a sequence.
    """
    return LoweredFunction(fun, multiple_results)


def same_axis(operands: Sequence[Any], batch_axes: Sequence[int | None]) -> tuple[list[Any], int]:
    """The operands with their batch axes in one position, that of the first; those without one stay as they are."""
    axis = next(a for a in batch_axes if a is not None)
    moved = [x if a is None else move_axis(x, a, axis) for x, a in zip(operands, batch_axes, strict=True)]
    return moved, axis


def _as_aval(value: Any) -> ShapedArray:
    """A result of an abstract evaluation: a `ShapedArray`, or what has a shape and a dtype."""
    if isinstance(value, ShapedArray):
        return value
    return ShapedArray(tuple(value.shape), value.dtype, getattr(value, "weak_type", False))
