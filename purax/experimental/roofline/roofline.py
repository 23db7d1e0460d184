"""`roofline`: walks a program and adds up what the rules of its primitives say (`rooflines` has them).

`unfused` counts take every operation by itself; the others take elementwise operations as free, since they are fused
with products. Memory is that of the arrays which are alive before an operation. Inside a mesh, counts are per device.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from purax.api.autodiff import vjp
from purax.api.jit import make_jaxpr
from purax.api.stages import ShapeDtypeStruct
from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.core.specs import PartitionSpec, names_of
from purax.interpreters.simplify import remove_dead_code
from purax.lax.collectives import psum
from purax.sharding.shard_map import shard_map_p
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = [
    "RooflineResult",
    "RooflineRuleContext",
    "RooflineShape",
    "register_roofline",
    "register_standard_roofline",
    "roofline",
    "roofline_and_grad",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineShape:
    """An array, as rules see it.

    >>> from purax.experimental.roofline import RooflineShape
    >>> import numpy as np
    >>> RooflineShape(shape=(2, 3), dtype=np.dtype("float32")).bytes
    24
    """

    shape: tuple[int, ...]
    dtype: Any

    @classmethod
    def from_aval(cls, aval: Any) -> RooflineShape:
        """The array of a type."""
        return cls(shape=tuple(aval.shape), dtype=aval.dtype)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes of memory it takes."""
        return int(self.size * _bytes_of(self.dtype))

    @classmethod
    def total_bytes(cls, avals: Sequence[Any]) -> int:
        """How many bytes arrays of some types take together."""
        return sum(cls.from_aval(aval).bytes for aval in avals)


def _bytes_of(dtype: Any) -> float:
    if isinstance(dtype, dtypes.ExtendedDtype):
        words = getattr(dtype, "element_aval", None)
        return RooflineShape.from_aval(words).bytes if words is not None else 8
    return dtypes.itemsize_bits(dtype) / 8 if dtype != np.bool_ else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRuleContext:
    """What a rule knows of the place of an operation.

    Attributes:
        name_stack: the scopes that were open.
        primitive: the operation.
        avals_in: the types of the operands.
        avals_out: the types of the results.
        jaxpr_eqn_ctx: None.
        mesh: the mesh, if there is one.
        pin_lhs_in_vmem: whether left operands of products need not be read.
        pin_rhs_in_vmem: whether right operands need not.
    """

    name_stack: Any
    primitive: Any
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    jaxpr_eqn_ctx: Any
    mesh: Any
    pin_lhs_in_vmem: bool
    pin_rhs_in_vmem: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineResult:
    """What a program takes.

    Attributes:
        flops: operations on numbers, without elementwise ones.
        unfused_flops: with them.
        ici_bytes: bytes that a device sends along each axis of the mesh.
        ici_latency: steps of communication along each axis.
        hbm_bytes: bytes read and written by what is not elementwise.
        peak_hbm_bytes: the most memory that is in use at once.
        unfused_hbm_bytes: bytes read and written if nothing is fused.
    """

    flops: int = 0
    unfused_flops: int = 0
    ici_bytes: dict[str, int] = field(default_factory=dict)
    ici_latency: dict[str, int] = field(default_factory=dict)
    hbm_bytes: int = 0
    peak_hbm_bytes: int = 0
    unfused_hbm_bytes: int = 0

    @classmethod
    def zeros(cls) -> RooflineResult:
        """That of a program that does nothing."""
        return cls()

    def __add__(self, other: RooflineResult) -> RooflineResult:
        def merged(mine: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, int]:
            return {key: mine.get(key, 0) + theirs.get(key, 0) for key in (*mine, *theirs)}

        return RooflineResult(
            flops=self.flops + other.flops,
            unfused_flops=self.unfused_flops + other.unfused_flops,
            ici_bytes=merged(self.ici_bytes, other.ici_bytes),
            ici_latency=merged(self.ici_latency, other.ici_latency),
            hbm_bytes=self.hbm_bytes + other.hbm_bytes,
            peak_hbm_bytes=self.peak_hbm_bytes + other.peak_hbm_bytes,
            unfused_hbm_bytes=self.unfused_hbm_bytes + other.unfused_hbm_bytes,
        )


Rule = Callable[..., RooflineResult]
rules: dict[Primitive, Rule] = {}
programs: dict[Primitive, Callable[[Mapping[str, Any]], Sequence[ClosedJaxpr | Jaxpr]]] = {}


def register_roofline(prim: Primitive) -> Callable[[Rule], Rule]:
    """A decorator that sets the rule of a primitive.

    Args:
        prim: the primitive. Its rule takes a context, a `RooflineShape` per operand, and the parameters.
    """

    def register(rule: Rule) -> Rule:
        rules[prim] = rule
        return rule

    return register


def register_standard_roofline(prim: Primitive) -> None:
    """Says that a primitive is free.

    Args:
        prim: the primitive.
    """
    rules[prim] = lambda context, *shapes, **params: RooflineResult.zeros()


def roofline(
    f: Callable,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    vjp: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult]]:
    """A function that counts what `f` takes for arguments of some types.

    Args:
        f: the function, of one device's parts if there is a mesh.
        mesh: a mesh, which may be one of shapes alone.
        in_specs: how the arguments are sharded over it.
        out_specs: how the results are.
        pin_lhs_in_vmem: whether left operands of products need not be read.
        pin_rhs_in_vmem: whether right operands need not.
        vjp: whether the backward pass is counted, without the forward one.
        print_jaxpr: whether the program is printed.

    Returns:
        A function of arrays, or of `ShapeDtypeStruct`s, that returns the types of the results and the counts.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.roofline import roofline
    >>> x = px.ShapeDtypeStruct((4, 8), jnp.float32)
    >>> y = px.ShapeDtypeStruct((8, 16), jnp.float32)
    >>> out, counts = roofline(lambda x, y: x @ y)(x, y)
    >>> out.shape, counts.flops, counts.hbm_bytes
    ((4, 16), 1024, 896)
    """

    def count(*args: Any) -> tuple[Any, RooflineResult]:
        leaves, tree = tree_flatten(args)
        structs = [_struct(x) for x in leaves]
        sizes = {} if mesh is None else dict(mesh.shape)
        specs = [()] * len(leaves)
        if mesh is not None:
            prefix = (
                in_specs
                if isinstance(in_specs, tuple) and not _is_spec(in_specs)
                else (in_specs,) * len(args)
            )
            specs = broadcast_prefix(prefix, args, is_leaf=_is_spec)
            structs = [_scaled(x, spec, sizes, shrink=True) for x, spec in zip(structs, specs, strict=True)]
        given = tree_unflatten(tree, structs)
        trace = functools.partial(make_jaxpr, axis_env=list(sizes.items()) or None)
        closed, results = trace(f, return_shape=True)(*given)
        if vjp:
            closed = _backward(f, trace, given, results, [_unused(spec, sizes) for spec in specs])
        if mesh is not None:
            flat, out_tree = tree_flatten(results)
            out = broadcast_prefix(out_specs, results, is_leaf=_is_spec)
            whole = [_scaled(x, spec, sizes, shrink=False) for x, spec in zip(flat, out, strict=True)]
            results = tree_unflatten(out_tree, whole)
        if print_jaxpr:
            print(closed)
        walk = _Walk(mesh, pin_lhs_in_vmem, pin_rhs_in_vmem)
        return results, walk.count(closed)

    return count


def _struct(x: Any) -> ShapeDtypeStruct:
    aval = x if isinstance(x, ShapeDtypeStruct) else aval_of(x)
    return ShapeDtypeStruct(aval.shape, aval.dtype)


def _is_spec(x: Any) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _scaled(x: Any, spec: Any, sizes: Mapping[str, int], shrink: bool) -> ShapeDtypeStruct:
    """The part of an array that a device has, or the array that such parts make."""
    shape = list(x.shape)
    for axis, entry in enumerate(spec or ()):
        n = math.prod(sizes[name] for name in names_of(entry))
        if shrink and shape[axis] % n:
            raise located(
                ValueError,
                f"roofline: axis {axis} of {tuple(x.shape)} does not divide into {n} parts, {spec}",
            )
        shape[axis] = shape[axis] // n if shrink else shape[axis] * n
    return ShapeDtypeStruct(shape, x.dtype)


def _unused(spec: Any, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The axes of the mesh along which an array is the same everywhere."""
    used = {name for entry in spec or () for name in names_of(entry)}
    return tuple(name for name in sizes if name not in used)


def _backward(
    function: Callable, trace: Callable, given: Any, results: Any, unused: Sequence[tuple[str, ...]]
) -> ClosedJaxpr:
    """The program from arguments and cotangents to the cotangents of the arguments, summed where these are the same."""

    def backward(args: Any, cotangents: Any) -> Any:
        gradients, tree = tree_flatten(vjp(function, *args)[1](cotangents))
        summed = [psum(x, axes) if axes else x for x, axes in zip(gradients, unused, strict=True)]
        return tree_unflatten(tree, summed)

    closed = trace(backward)(given, results)
    return closed.replace(jaxpr=remove_dead_code(closed.jaxpr, [True] * len(closed.jaxpr.outvars)))


def roofline_and_grad(
    f: Callable,
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    *,
    pin_lhs_in_vmem: bool = False,
    pin_rhs_in_vmem: bool = False,
    print_jaxpr: bool = False,
) -> Callable[..., tuple[Any, RooflineResult, RooflineResult]]:
    """`roofline` of the forward and of the backward pass.

    Args:
        f: the function, of one device's parts.
        mesh: the mesh.
        in_specs: how the arguments are sharded over it.
        out_specs: how the results are.
        pin_lhs_in_vmem: whether left operands of products need not be read.
        pin_rhs_in_vmem: whether right operands need not.
        print_jaxpr: whether the programs are printed.
    """
    options = {
        "pin_lhs_in_vmem": pin_lhs_in_vmem,
        "pin_rhs_in_vmem": pin_rhs_in_vmem,
        "print_jaxpr": print_jaxpr,
    }

    def count(*args: Any) -> tuple[Any, RooflineResult, RooflineResult]:
        results, forward = roofline(f, mesh, in_specs, out_specs, **options)(*args)
        _, backward = roofline(f, mesh, in_specs, out_specs, vjp=True, **options)(*args)
        return results, forward, backward

    return count


@dataclass
class _Walk:
    """Counts programs; what lives is followed by variable, and programs inside count with what lives around them."""

    mesh: Any
    pin_lhs: bool
    pin_rhs: bool

    def count(self, program: ClosedJaxpr | Jaxpr, around: int = 0) -> RooflineResult:
        jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
        last: dict[Var, int] = {}
        for i, eqn in enumerate(jaxpr.eqns):
            last.update({v: i for v in eqn.invars if not isinstance(v, Literal)})
        last.update({v: len(jaxpr.eqns) for v in jaxpr.outvars if not isinstance(v, Literal)})
        alive = {v: _memory(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)}
        total, peak = RooflineResult.zeros(), around + sum(alive.values())
        for i, eqn in enumerate(jaxpr.eqns):
            now = around + sum(alive.values())
            peak = max(peak, now)
            total, peak = self._add(total, peak, eqn, now)
            for v in eqn.outvars:
                if last.get(v, -1) > i:
                    alive[v] = _memory(v.aval)
            for v in {v for v in eqn.invars if not isinstance(v, Literal) and last[v] == i}:
                alive.pop(v, None)
        return _with_peak(total, peak)

    def _add(self, total: RooflineResult, peak: int, eqn: Any, now: int) -> tuple[RooflineResult, int]:
        find = programs.get(eqn.primitive)
        if find is not None:
            around = (
                0
                if eqn.primitive is shard_map_p
                else now
                - RooflineShape.total_bytes(
                    [v.aval for v in {v for v in eqn.invars if not isinstance(v, Literal)}]
                )
            )
            for inner in find(eqn.params):
                found = self.count(inner, max(around, 0))
                inner_peak = found.peak_hbm_bytes
                peak = inner_peak if eqn.primitive is shard_map_p else max(peak, inner_peak)
                total = total + _with_peak(found, 0)
            return total, peak
        rule = rules.get(eqn.primitive)
        if rule is None:
            raise located(
                NotImplementedError,
                f"roofline has no rule for `{eqn.primitive}`; give it one with "
                "`@register_roofline(primitive)`, or call it free with `register_standard_roofline(primitive)`",
            )
        context = RooflineRuleContext(
            name_stack=eqn.scope,
            primitive=eqn.primitive,
            avals_in=[v.aval for v in eqn.invars],
            avals_out=[v.aval for v in eqn.outvars],
            jaxpr_eqn_ctx=None,
            mesh=self.mesh,
            pin_lhs_in_vmem=self.pin_lhs,
            pin_rhs_in_vmem=self.pin_rhs,
        )
        shapes = [RooflineShape.from_aval(v.aval) for v in eqn.invars]
        return total + _with_peak(rule(context, *shapes, **eqn.params), 0), peak


def _memory(aval: ShapedArray | Zero) -> int:
    return RooflineShape.from_aval(aval).bytes


def _with_peak(result: RooflineResult, peak: int) -> RooflineResult:
    return RooflineResult(
        flops=result.flops,
        unfused_flops=result.unfused_flops,
        ici_bytes=result.ici_bytes,
        ici_latency=result.ici_latency,
        hbm_bytes=result.hbm_bytes,
        peak_hbm_bytes=peak,
        unfused_hbm_bytes=result.unfused_hbm_bytes,
    )
