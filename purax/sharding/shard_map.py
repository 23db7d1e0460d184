"""`shard_map`: a function of the parts of arrays, run by every device of a mesh on its own part.

Inside, the axes of the mesh are named axes, over which devices communicate by collective operations (`psum`, …). Types
say along which of them a value may differ from device to device (`ShapedArray.vma`), so that results that are said to
be the same on all devices are, and derivatives sum over devices exactly where values are shared.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from purax.config import config
from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.batch_rule import batch_rule
from purax.core.exact import exact_items
from purax.core.jaxpr import ClosedJaxpr, Literal, eval_jaxpr
from purax.core.limits import finite
from purax.core.primitive import LinearOperand
from purax.core.source import located
from purax.core.trace import compiling
from purax.errors import shown
from purax.execution import compiled_program
from purax.interpreters.arguments import argument_name, arrays_of, name_of, parameter_names, to_array, wraps
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.named_axes import named_axes, named_axis_sizes
from purax.interpreters.program_rules import ProgramCall, by_operand, uses_axis, with_tangents
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import checked_results, stage
from purax.interpreters.transpose import transpose_flat
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering.jaxpr_to_stablehlo import lower_body
from purax.primitives.collective.collectives import psum_p
from purax.primitives.elementwise.arithmetic import div
from purax.primitives.shape.broadcasting import batch_size, materialize, move_axis
from purax.primitives.shape.reshaping import reshape
from purax.sharding.mesh import Mesh, PartitionSpec, current_mesh
from purax.sharding.shardings import NamedSharding, check_spec
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_flatten_with_path, tree_unflatten
from purax.xla.stablehlo import sharding_text, symbol

_WHOLE = PartitionSpec()


class ShardMap(ProgramCall):
    """Runs `jaxpr`, a program on parts, on every device of `mesh`.

    Parameters: for each operand and result how it is cut (`in_specs`, `out_specs`); `manual_axes`, the axes of the mesh
    that the program sees, while the compiler handles all others; `check`, whether types say what varies.
    """

    name = "shard_map"

    def infer(self, *avals, jaxpr, mesh, in_specs, out_specs, manual_axes, check):
        for i, (aval, spec, local) in enumerate(zip(avals, in_specs, jaxpr.in_avals, strict=True)):
            if NamedSharding(mesh, spec).shard_shape(aval.shape) != local.shape:
                raise TypeError(
                    f"operand {i} of shard_map, {aval.str_short()}, has parts of shape {local.shape}"
                )
        outs = [whole_aval(aval, mesh, spec) for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)]
        if len(manual_axes) < len(mesh.axis_names):  # the compiler decides along the others
            return outs
        specs = [NamedSharding(mesh, spec) for spec in out_specs]
        return [aval.with_layout(s.as_type(aval.ndim)) for aval, s in zip(outs, specs, strict=True)]

    def infer_varying(self, avals, params, result):
        vma = frozenset().union(*[aval.vma for aval in avals]) - set(params["manual_axes"])
        return [aval.with_vma(vma) for aval in result]

    def specs_wanted(self, *, in_specs, **params):
        return in_specs

    def run(self, *operands, jaxpr, **params):
        avals = tuple(aval_of(x) for x in operands)
        key = ("shard_map", avals, *exact_items(params))
        if key not in jaxpr.derived:
            jaxpr.derived[key] = stage(
                lambda *xs: self.bind(*xs, jaxpr=jaxpr, **params), avals, jaxpr.jaxpr.name
            )
        with compiling():  # equations on parts cannot run one by one: they may communicate
            return compiled_program.run(jaxpr.derived[key], operands)

    def values_inside(self, *operands, jaxpr, **params):
        """Every equation of the program on parts, with its operands and results; a first axis runs over the parts."""
        variables = [*jaxpr.jaxpr.invars, *(v for eqn in jaxpr.eqns for v in eqn.outvars)]
        variables = [v for v in variables if not dtypes.is_extended(v.aval.dtype)]
        everything = jaxpr.jaxpr.replace(outvars=variables)

        def stacked(*args):
            results = eval_jaxpr(everything, jaxpr.consts, *args)
            return [reshape(y, (1, *aval_of(y).shape)) for y in results]

        with _axes_of(params):
            closed = stage(stacked, jaxpr.in_avals, jaxpr.jaxpr.name)
        parts = PartitionSpec(
            tuple(name for name in params["mesh"].axis_names if name in params["manual_axes"])
        )
        specs = (*(_WHOLE for _ in closed.consts), *params["in_specs"])
        changed = params | {"in_specs": specs, "out_specs": (parts,) * len(variables)}
        results = self.run(*closed.consts, *operands, jaxpr=hoist_constants(closed), **changed)
        known = dict(zip(variables, results, strict=True))
        read = lambda v: v.array if type(v) is Literal else known.get(v)  # noqa: E731
        return [(eqn, [read(v) for v in eqn.invars], [read(v) for v in eqn.outvars]) for eqn in jaxpr.eqns]

    def lower(self, builder, *operands, jaxpr, mesh, in_specs, out_specs, manual_axes, check):
        some_left = len(manual_axes) < len(mesh.axis_names)
        layouts = lambda specs, values: ", ".join(  # noqa: E731
            sharding_text(spec, v.ndim, some_left) for spec, v in zip(specs, values, strict=True)
        )
        out_avals = self.infer(
            *[x.aval for x in operands],
            jaxpr=jaxpr,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            manual_axes=manual_axes,
            check=check,
        )
        axes = ", ".join(f'"{symbol(str(name))}"' for name in mesh.axis_names if name in manual_axes)
        body = builder.region(
            jaxpr.in_avals,
            lambda inner, *args: lower_body(inner, jaxpr.jaxpr, args),
            "sdy.return",
            is_local=not some_left,
        )
        return builder.manual_computation(
            operands, layouts(in_specs, operands), layouts(out_specs, out_avals), axes, body, out_avals
        )

    def names_axis(self, axis_name, *, jaxpr, manual_axes, **params):
        return axis_name not in manual_axes and uses_axis(jaxpr, axis_name)

    # -- derivatives and batches: the same map of another program, with specs for what it takes and gives

    def mapped(self, closed: ClosedJaxpr, operands, params, in_specs, out_specs) -> list[Any]:
        """Maps a program made from another; its constants are the same on all devices."""
        specs = (*(_WHOLE for _ in closed.consts), *in_specs)
        changed = params | {"in_specs": specs, "out_specs": tuple(out_specs)}
        return self.bind(*closed.consts, *operands, jaxpr=hoist_constants(closed), **changed)

    def jvp(self, primals, tangents, *, jaxpr, **params):
        moving = [type(t) is not Zero for t in tangents]
        in_specs, out_specs = params["in_specs"], params["out_specs"]
        with _axes_of(params):
            derivative, out_moving = jvp_jaxpr(jaxpr, moving)
        results = self.mapped(
            derivative,
            [*primals, *(t for t in tangents if type(t) is not Zero)],
            params,
            (*in_specs, *chosen(in_specs, moving)),
            (*out_specs, *chosen(out_specs, out_moving)),
        )
        return with_tangents(results[: len(out_moving)], results[len(out_moving) :], out_moving)

    def linearize(self, primals, tangents, *, jaxpr, **params):
        moving = [type(t) is not Zero for t in tangents]
        in_specs, out_specs = params["in_specs"], params["out_specs"]
        with _axes_of(params):
            primal, linear, out_moving, count = linearize_jaxpr(jaxpr, moving)
            first = len(jaxpr.out_avals)
            residual_avals = primal.out_avals[first:]
            primal, linear = _stacking(primal, first), _unstacking(linear, count)
        residual_specs = [_residual_spec(aval, params) for aval in residual_avals]
        results = self.mapped(primal, primals, params, in_specs, (*out_specs, *residual_specs))
        out, residuals = results[:first], results[first:]
        given = [t for t in tangents if type(t) is not Zero]
        out_tangents = ()
        if any(out_moving):
            out_tangents = self.mapped(
                linear,
                [*residuals, *given],
                params,
                (*residual_specs, *chosen(in_specs, moving)),
                chosen(out_specs, out_moving),
            )
        return with_tangents(out, out_tangents, out_moving)

    def transpose(self, cotangents, *operands, jaxpr, **params):
        linear = [type(x) is LinearOperand for x in operands]
        given = [type(c) is not Zero for c in cotangents]
        in_specs, out_specs = params["in_specs"], params["out_specs"]
        transposed, flowing = _transposed(jaxpr, tuple(linear), tuple(given), params)
        fixed = [x for x in operands if type(x) is not LinearOperand]
        results = self.mapped(
            transposed,
            [*fixed, *(c for c in cotangents if type(c) is not Zero)],
            params,
            (*chosen(in_specs, [not is_linear for is_linear in linear]), *chosen(out_specs, given)),
            chosen(chosen(in_specs, linear), flowing),
        )
        return by_operand(operands, flowing, results)

    def batch_collective(self, size, axis_name, operands, batch_axes, *, jaxpr, **params):
        batched = [axis is not None for axis in batch_axes]
        moved = [x if a is None else move_axis(x, a, 0) for x, a in zip(operands, batch_axes, strict=True)]
        spread = None if axis_name is not None else _spread_over(params, size)
        parts = math.prod(params["mesh"].shape[name] for name in spread or ())
        with _axes_of(params):
            varying = frozenset(spread or () if params["check"] else ())
            vectorized, out_batched = batch_jaxpr(jaxpr, batched, size // parts, axis_name, varying=varying)
        grow = lambda specs, flags: [  # noqa: E731
            PartitionSpec(spread, *spec) if flag else spec for spec, flag in zip(specs, flags, strict=True)
        ]
        results = self.mapped(
            vectorized,
            moved,
            params,
            grow(params["in_specs"], batched),
            grow(params["out_specs"], out_batched),
        )
        return results, [0 if b else None for b in out_batched]

    def thread(self, threader, state, operands, *, jaxpr, **params):
        count = len(state)
        names = tuple(n for n in params["mesh"].axis_names if n in params["manual_axes"])

        def run(*args):
            after, results = threader.run(jaxpr, args[:count], args[count:])
            return [*threader.merged(after, names), *results]

        with _axes_of(params):
            threaded = stage(run, [*map(aval_of, state), *jaxpr.in_avals], jaxpr.jaxpr.name)
        whole = (_WHOLE,) * count
        specs = ((*whole, *params["in_specs"]), (*whole, *params["out_specs"]))
        results = self.mapped(threaded, [*state, *operands], params, *specs)
        return results[:count], results[count:]

    def batch(self, operands, batch_axes, **params):
        return self.batch_collective(batch_size(operands, batch_axes), None, operands, batch_axes, **params)


shard_map_p = ShardMap()


def chosen(values: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]


def _spread_over(params: dict[str, Any], size: int) -> tuple[Any, ...] | None:
    """The axes of the mesh that a batch axis is sharded over (`spmd_axis_name` of `vmap`); None for none."""
    spread = batch_rule.spread
    if spread is None:
        return None
    names = spread if isinstance(spread, tuple) else (spread,)
    mesh, own = params["mesh"], params["manual_axes"]
    used = {name for spec in (*params["in_specs"], *params["out_specs"]) for name in spec.all_names}
    if not all(name in own for name in names):
        raise located(
            ValueError,
            f"vmap: spmd_axis_name={shown(spread)} is not among the axes {tuple(own)} that shard_map maps",
        )
    if used & set(names):
        raise located(
            ValueError,
            f"vmap: spmd_axis_name={shown(spread)} is an axis that the specs of the shard_map use already",
        )
    parts = math.prod(mesh.shape[name] for name in names)
    if size % parts:
        raise located(
            ValueError,
            f"vmap: a batch of {size} cannot be sharded over {shown(spread)}, which has size {parts}",
        )
    return names


def _axes_of(params: dict[str, Any]) -> Any:
    mesh = params["mesh"]
    axes = [(name, mesh.shape[name]) for name in mesh.axis_names if name in params["manual_axes"]]
    return named_axes(axes, params["check"])


def part_aval(
    aval: ShapedArray, mesh: Mesh, spec: PartitionSpec, manual_axes: Any, check: bool
) -> ShapedArray:
    """The type of one device's part of an array."""
    local = aval.with_shape(NamedSharding(mesh, spec).shard_shape(aval.shape))
    return local.with_vma(local.vma | {n for n in spec.all_names if n in manual_axes}) if check else local


def whole_aval(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec) -> ShapedArray:
    """The type of the array that parts of type `aval` make up."""
    parts = NamedSharding(mesh, spec).parts(aval.ndim)
    return ShapedArray(
        tuple(n * p for n, p in zip(aval.shape, parts, strict=True)), aval.dtype, aval.weak_type
    )


def _residual_spec(aval: ShapedArray, params: dict[str, Any]) -> PartitionSpec:
    """Residuals get a first axis, along which those of the devices that differ are stacked."""
    names = [n for n in params["mesh"].axis_names if n in params["manual_axes"]]
    varying = tuple(n for n in names if not params["check"] or n in aval.vma)
    return PartitionSpec(varying) if varying else _WHOLE


def _stacking(closed: ClosedJaxpr, first: int) -> ClosedJaxpr:
    """The program, with a first axis of size 1 for each result from number `first` on."""
    from_program = _evaluator(closed)

    def stacked(*args):
        out = from_program(*args)
        return [*out[:first], *(reshape(x, (1, *aval_of(x).shape)) for x in out[first:])]

    return stage(stacked, closed.in_avals, closed.jaxpr.name)


def _unstacking(closed: ClosedJaxpr, count: int) -> ClosedJaxpr:
    """The program, of whose first `count` arguments the first axis, of size 1, is taken away."""
    from_program = _evaluator(closed)

    def unstacked(*args):
        return from_program(*(reshape(x, aval_of(x).shape[1:]) for x in args[:count]), *args[count:])

    avals = [
        aval.with_shape((1, *aval.shape)) if i < count else aval for i, aval in enumerate(closed.in_avals)
    ]
    return stage(unstacked, avals, closed.jaxpr.name)


def _evaluator(closed: ClosedJaxpr) -> Callable[..., Sequence[Any]]:
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def _transposed(
    closed: ClosedJaxpr, linear: tuple[bool, ...], given: tuple[bool, ...], params: dict[str, Any]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The transpose of a program on parts: (other arguments, cotangents) -> cotangents of the linear arguments.

    With types that say what varies, `transpose_flat` sums over devices where values are shared. Without, a result that
    all devices have counts once for each of them, and so does an argument.
    """
    mesh, manual, check = params["mesh"], params["manual_axes"], params["check"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    key = ("transposed part", linear, given, mesh, manual, check, in_specs, out_specs)
    if key in closed.derived:
        return closed.derived[key]
    flowing: list[bool] = []
    shared = lambda spec: tuple(n for n in mesh.axis_names if n in manual and n not in spec.all_names)  # noqa: E731

    def once(cotangent, spec):
        count = 1
        for name in () if check else shared(spec):
            count *= mesh.shape[name]
        return div(cotangent, count) if count > 1 else cotangent

    def summed(cotangent, spec):
        names = () if check or type(cotangent) is Zero else shared(spec)
        return psum_p.bind(cotangent, axis_name=names, axis_index_groups=None) if names else cotangent

    def pulled(*args):
        inputs = iter(args)
        operands = [
            LinearOperand(aval) if is_linear else next(inputs)
            for aval, is_linear in zip(closed.in_avals, linear, strict=True)
        ]
        cotangents = [
            once(next(inputs), spec) if is_given else Zero(aval)
            for aval, spec, is_given in zip(closed.out_avals, out_specs, given, strict=True)
        ]
        results = transpose_flat(closed, operands, cotangents)
        wanted = [
            summed(c, s) for c, s in zip(chosen(results, linear), chosen(in_specs, linear), strict=True)
        ]
        flowing.extend(type(c) is not Zero for c in wanted)
        return [materialize(c) for c in wanted if type(c) is not Zero]

    fixed = [aval for aval, is_linear in zip(closed.in_avals, linear, strict=True) if not is_linear]
    arriving = []
    for aval, spec, is_given in zip(closed.out_avals, out_specs, given, strict=True):
        if is_given:
            vma = frozenset(n for n in spec.all_names if n in manual) if check else frozenset()
            arriving.append(aval.with_vma(vma | (aval.vma - set(manual))))
    with _axes_of(params):
        made = stage(pulled, [*fixed, *arriving], f"transpose_{closed.jaxpr.name}")
    closed.derived[key] = made, flowing
    return closed.derived[key]


# --- for users


def map_parts(
    function: Callable[..., Sequence[Any]],
    mesh: Mesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Callable[[], Sequence[PartitionSpec]],
    operands: Sequence[Any],
    *,
    name: str = "",
    manual_axes: frozenset[Any] | None = None,
    check: bool = False,
    what: str = "",
) -> list[Any]:
    """Maps a function of flat lists of parts over a mesh.

    Args:
        function: of the parts of the operands.
        mesh: the mesh.
        in_specs: how each operand is cut.
        out_specs: gives, once the function has run, how each result is made up of parts.
        operands: arrays.
        name: of the function, for messages.
        manual_axes: the axes that the function sees; all unless given.
        check: whether types say along which axes values vary.
        what: is mapped, for messages.
    """
    manual = frozenset(mesh.axis_names) if manual_axes is None else manual_axes
    arrays = [to_array(x) for x in operands]
    local = [part_aval(x.aval, mesh, s, manual, check) for x, s in zip(arrays, in_specs, strict=True)]
    # A `shard_map` inside, and bare specs, are about this mesh.
    inside = contextlib.nullcontext() if config.mesh is mesh else config.override(mesh=mesh)
    with inside, named_axes([(n, mesh.shape[n]) for n in mesh.axis_names if n in manual], check):
        closed = stage(function, local, name or name_of(function))
    specs = tuple(out_specs())
    for aval, spec in zip(closed.out_avals, specs, strict=True):
        _check_result(aval, spec, what, manual, check)
    return shard_map_p.bind(
        *closed.consts,
        *arrays,
        jaxpr=hoist_constants(closed),
        mesh=mesh,
        in_specs=(*(_WHOLE for _ in closed.consts), *in_specs),
        out_specs=specs,
        manual_axes=manual,
        check=check,
    )


def shard_map(
    f: Callable | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | None = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Callable:
    """Runs a function on every device of a mesh, each with its own part of the arguments.

    Args:
        f: a function of parts. Inside, the axes of the mesh are named axes for `psum` and the other collectives.
        out_specs: how the results of the devices make up the results: a `PartitionSpec`, or a tree of them that is a
            prefix of the results. Along axes that a spec does not name, all devices must have the same result.
        in_specs: how the arguments are cut; likewise a prefix of the tuple of arguments. None if their types say it,
            over a mesh with axes of type `Explicit`.
        mesh: the devices; that of the `shard_map` around it, or of the `with mesh:` block, unless given.
        axis_names: the axes of the mesh that the function sees; all unless given, or those that a `shard_map` around it
            has left. The compiler handles the others.
        check_vma: whether to check that results are the same where `out_specs` say so. Without it, the sum over
            devices is its own transpose, as in `pmap`.

    Returns:
        A function of whole arrays.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.sharding import Mesh, PartitionSpec as P
    >>> mesh = Mesh(px.devices()[:1], ("data",))
    >>> total = shard_map(lambda x: px.lax.psum(x.sum(), "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
    >>> total(jnp.arange(4.0))
    Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    names = parameter_names(f)
    what = f"shard_map of `{name_of(f)}`"

    @wraps(f)
    def mapped(*args):
        over = mesh if mesh is not None else current_mesh()
        if not isinstance(over, Mesh):
            raise located(
                ValueError,
                f"{what} needs a mesh: pass mesh=, or call it in a `with mesh:` block; got {shown(over)}",
            )
        unknown = set(finite(axis_names)) - set(over.axis_names)
        if unknown:
            raise located(
                ValueError, f"{what}: axis_names {sorted(unknown)} are not axes of the mesh {over.axis_names}"
            )
        bound = named_axis_sizes() if mesh is None else {}
        manual = frozenset(finite(axis_names)) or frozenset(n for n in over.axis_names if n not in bound)
        if not manual:
            raise located(ValueError, f"{what}: all axes of {over} belong to the shard_map around it already")
        leaves, tree = tree_flatten(args)
        operands = arrays_of(f, leaves, (args, {}))
        if in_specs is None:
            specs = [_spec_of_type(aval_of(x), what) for x in operands]
        else:
            specs = _flat_specs(in_specs, args, over, manual, what, "in_specs")
        for (path, _), x, spec in zip(tree_flatten_with_path((args, {}))[0], operands, specs, strict=True):
            place = f"argument {argument_name(path, names)} of {what},"
            NamedSharding(over, spec).check_shape(aval_of(x).shape, place)
        out_tree = None
        flat_out_specs: list[PartitionSpec] = []

        def flat(*parts):
            nonlocal out_tree
            results = f(*tree_unflatten(tree, parts))
            out_leaves, out_tree = tree_flatten(results)
            flat_out_specs.extend(_flat_specs(out_specs, results, over, manual, what, "out_specs"))
            return checked_results(out_leaves, results, name_of(f))

        results = map_parts(
            flat,
            over,
            specs,
            lambda: flat_out_specs,
            operands,
            name=name_of(f),
            manual_axes=manual,
            check=check_vma,
            what=what,
        )
        return tree_unflatten(out_tree, results)

    return mapped


def _spec_of_type(aval: ShapedArray, what: str) -> PartitionSpec:
    """How an argument is cut as its type says."""
    if aval.layout is None:
        raise located(
            TypeError,
            f"{what} needs in_specs: the type of an argument, {aval.str_short()}, does not say how it is sharded over "
            "the mesh. Types say it over meshes with axes of type Explicit.",
        )
    return aval.layout.spec


def _flat_specs(
    specs: Any, values: Any, mesh: Mesh, manual: frozenset, what: str, name: str
) -> list[PartitionSpec]:
    is_leaf = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    flat = broadcast_prefix(specs, values, is_leaf=is_leaf, prefix_name=name, full_name="the arguments")
    for spec in flat:
        if not isinstance(spec, PartitionSpec):
            raise located(
                TypeError,
                f"{what}: {name} must be PartitionSpecs, got {shown(spec)}; P() means not cut at all",
            )
        check_spec(mesh, spec)
        if not set(spec.all_names) <= manual:
            raise located(
                ValueError,
                f"{what}: {name} {spec} names axes that are not among axis_names {sorted(map(str, manual))}",
            )
    return flat


def _check_result(aval: ShapedArray, spec: PartitionSpec, what: str, manual: frozenset, check: bool) -> None:
    if len([e for e in spec]) > aval.ndim and spec.all_names:
        raise located(
            ValueError,
            f"{what}: out_specs {spec} has more entries than a result of shape {aval.shape} has axes",
        )
    left = (aval.vma & manual) - set(spec.all_names)
    if check and left:
        names = ", ".join(repr(n) for n in sorted(left, key=str))
        raise located(
            ValueError,
            f"{what}: a result {aval.str_short()} differs from device to device along {names}, but its out_specs "
            f"{spec} says that it does not. Combine it (`psum`, `pmean`, `all_gather`) over {names}, or name "
            "the axis in out_specs. If it is the same on all devices for a reason that types cannot know, pass "
            "check_vma=False.",
        )
