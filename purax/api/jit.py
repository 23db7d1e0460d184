"""`jit`: compiles a function as a whole.

A call looks up its argument tree, types, static values and configuration; a hit runs the compiled program at once.
A miss traces the function to a jaxpr. Inside another transformation the call becomes one `jit` equation, which keeps
its program: it is differentiated and vectorized once, and emitted once however often it is called.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import time
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypedDict, TypeVar, Unpack, overload

from purax.api import cache_misses, nan_reports, pickling, shared_caches, stages  # noqa: F401  (nan_reports watches its flags)
from purax.api.dynamic import DynamicFunction
from purax.api.inlining import Inline, merges
from purax.api.shared_caches import shared_cache
from purax.config import config
from purax.core import phases, purity_hook, source
from purax.core.avals import Zero
from purax.core.exact import exact
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.jaxpr_check import same_type
from purax.core.rewriting_hook import record_or_rewrite
from purax.core.source import located
from purax.core.trace import Tracer, check_usable, current
from purax.errors import shown
from purax.execution import compiled_program, host_transforms  # noqa: F401  (gives the traces their rules on the host)
from purax.execution.device_put import put
from purax.execution.dispatch import Dispatch, make_entry
from purax.execution.eager import clear_plans, eager
from purax.execution.mesh_programs import place_program
from purax.interpreters.arguments import (
    argument_name,
    arrays_of,
    aval_of_argument,
    from_front,
    leaf_error,
    name_of,
    numbers_and_names,
    parameter_names,
    require_function,
    wraps,
)
from purax.interpreters.linearize import linearize_jaxpr, split_jaxpr
from purax.interpreters.named_axes import named_axes, named_axis_sizes
from purax.interpreters.opening import has_rules_of_others
from purax.interpreters.program_rules import ProgramCall, with_tangents
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import CapturedCell, checked_results, stage
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.shape.broadcasting import zeros
from purax.references import cells
from purax.references.traced import CellUse, open_results
from purax.sharding.constraints import constrain, flat_shardings, with_sharding_constraint
from purax.sharding.mesh import PartitionSpec
from purax.tree.registry import tree_flatten, tree_flatten_with_path, tree_unflatten
from purax.xla.host_memory import release_freed_pages

P = ParamSpec("P")
R = TypeVar("R")
logger = logging.getLogger("purax")


class Jit(ProgramCall):
    """A call of a program, `jaxpr`, that is compiled as a unit; `name` is that of the function."""

    name = "jit"
    is_fused = False
    is_call = True
    not_lowered = ("name",)

    def infer(self, *avals, jaxpr, name):
        for i, (given, wanted) in enumerate(zip(avals, jaxpr.in_avals, strict=True)):
            if not same_type(given, wanted):
                raise TypeError(
                    f"operand {i} of `{name}` has type {given.str_short()}, not {wanted.str_short()}"
                )
        return jaxpr.out_avals

    def run(self, *operands, jaxpr, name):
        return compiled_program.run(jaxpr, operands)

    def lower(self, builder, *operands, jaxpr, name):
        return jaxpr_to_stablehlo.lower_call(builder, jaxpr, operands, name)

    def params_for(self, role, params):
        return {"name": f"{role}_{params['name']}" if role else params["name"]}

    def linearize(self, primals, tangents, *, jaxpr, name):
        moving = [type(t) is not Zero for t in tangents]
        primal, linear, out_moving, _ = linearize_jaxpr(jaxpr, moving)
        results = self.call(primal, primals, {"name": name})
        out, residuals = results[: len(out_moving)], results[len(out_moving) :]
        given = [t for t in tangents if type(t) is not Zero]
        out_tangents = (
            self.call(linear, [*residuals, *given], {"name": name}, "linear") if any(out_moving) else ()
        )
        return with_tangents(out, out_tangents, out_moving)

    def apart(self, operands, tangents, *, jaxpr, name):
        known, linear, is_linear, _ = split_jaxpr(jaxpr, tangents)
        given = [x for x, is_tangent in zip(operands, tangents, strict=True) if not is_tangent]
        results = self.call(known, given, {"name": name})
        count = is_linear.count(False)
        moving = [x for x, is_tangent in zip(operands, tangents, strict=True) if is_tangent]
        of_tangents = iter(self.call(linear, [*results[count:], *moving], {"name": name}, "linear"))
        others = iter(results[:count])
        return [next(of_tangents) if flag else next(others) for flag in is_linear]


jit_p = Jit()


class Specialization:
    """A function traced for certain argument types: its program and the structure of its results.

    Attributes:
        guards: what the function read from outside and must be as it was, or None if it read nothing.
        others: all that the function was traced to for the same types, with other values outside.
        cells: the references that the function reads and writes, or None.
    """

    __slots__ = ("cells", "closed", "constants", "donated", "guards", "hoisted", "others", "out_tree")

    def __init__(
        self,
        closed: ClosedJaxpr,
        out_tree: Any,
        donated: tuple[bool, ...],
        guards: Any = None,
        cells: CellUse | None = None,
    ):
        self.guards = guards
        self.cells = cells
        self.others: list[Specialization] = [self]
        self.closed = closed
        self.constants = closed.consts
        self.hoisted = hoist_constants(closed)
        self.out_tree = out_tree
        more = len(closed.jaxpr.invars) - len(donated)  # the contents of captured cells
        self.donated = (False,) * len(closed.consts) + donated + (False,) * more if any(donated) else None


class JitFunction(Generic[P, R], Dispatch):
    """A function compiled by `jit`; call it like the function itself.

    `trace`, `lower` and `eval_shape` stop before running; `clear_cache` forgets what was traced. What it keeps is in
    slots: its `__dict__` holds the attributes of the function, which `functools.wraps` hands on.
    """

    __slots__ = (
        *(
            "__dict__",
            "__weakref__",
            "_cache",
            "_compiler_options",
            "_device",
            "_donated_names",
            "_donated_numbers",
        ),
        *("_donates", "_function", "_in_shardings", "_is_plain", "_keep_unused", "_name", "_options"),
        *("_out_shardings", "_parameter_names", "_signature", "_static_names", "_static_numbers"),
    )

    def __init__(self, function: Callable[P, R], options: dict[str, Any], shared: bool = True):
        self.__wrapped__ = function
        functools.update_wrapper(self, function)
        self._function = function
        self._name = name_of(function)
        self._options = options
        self._static_numbers, self._static_names = numbers_and_names(
            function, options["static_argnums"], options["static_argnames"], "static"
        )
        self._donated_numbers, self._donated_names = numbers_and_names(
            function, options["donate_argnums"], options["donate_argnames"], "donate"
        )
        both: list[Any] = sorted(self._static_names & self._donated_names)
        both = both or sorted(self._static_numbers & self._donated_numbers)
        if both:
            raise ValueError(
                f"jit of `{self._name}`: {both} are both static and donated; a static argument is not an array"
            )
        self._parameter_names = parameter_names(function)
        self._is_plain = not (self._static_numbers or self._static_names)
        self._donates = bool(self._donated_numbers or self._donated_names)
        self._keep_unused = options["keep_unused"]
        self._compiler_options = tuple(sorted((options["compiler_options"] or {}).items()))
        self._cache: dict[Any, Specialization] = shared_cache(function, options) if shared else {}
        # Compiled programs by argument structure and types, for calls that need nothing new, are in `self._fast`.
        self._set_static(tuple(self._static_numbers), self._static_names, self._donates)
        _functions.add(self)
        self._device = options["device"]
        self._in_shardings, self._out_shardings = options.get("in_shardings"), options.get("out_shardings")

    # -- calling

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if config.disable_jit:
            return self._function(*args, **kwargs)
        if config.explain_cache_misses:
            with phases.listening(cache_misses.tell_phases):
                return self._call_one(args, kwargs)
        return self._call_one(args, kwargs)

    def _call_one(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        specialization, leaves, constants, opened = self._specialize(args, kwargs)
        arrays = arrays_of(self._function, leaves, (args, kwargs), _BY_STATIC)
        if self._in_shardings is not None and current.trace is eager:
            arrays = self._placed(arrays, args, kwargs, opened)
        operands = [*constants, *arrays]
        if specialization.cells is not None:
            given = opened.cells if opened is not None else ()
            operands.extend(specialization.cells.operands(given, self._name))
        if current.trace is not eager:
            if self._options["inline"]:
                results = eval_jaxpr(specialization.hoisted.jaxpr, (), *operands)
            elif has_rules_of_others(specialization.hoisted) and current.interprets:
                results = purity_hook.run_lowering(
                    specialization.guards,
                    lambda: jit_p.bind(*operands, jaxpr=specialization.hoisted, name=self._name),
                )
            else:
                results = jit_p.bind(*operands, jaxpr=specialization.hoisted, name=self._name)
        else:
            if config.no_execution:
                raise located(
                    RuntimeError,
                    f"`{self._name}` would be executed, but the no_execution config option is set",
                )
            for x in operands:
                if isinstance(x, Tracer):
                    check_usable(x, eager)
            with (
                config.override(default_device=self._device)
                if self._device is not None
                else contextlib.nullcontext()
            ):
                device, placement, committed = place_program(
                    specialization.hoisted, operands, f"`{self._name}`"
                )
            runner = self._compiled(specialization, device)
            if placement is None and self._device is None and specialization.cells is None:
                key = self._key(args, kwargs)
                if key is not None:
                    guards, captured = specialization.guards, specialization.constants
                    self._fast[key] = make_entry(guards, captured, specialization.out_tree, runner)
            results = runner(operands, placement, committed)
        if specialization.cells is not None:
            results = specialization.cells.put(results, given)
        out = tree_unflatten(specialization.out_tree, results)
        return out if self._out_shardings is None else with_sharding_constraint(out, self._out_shardings)

    def _compiled(self, specialization: Specialization, device: Any) -> Any:
        """The program on a device, lowered and compiled if it is not yet."""

        def compiled() -> Any:
            return compiled_program.runner(
                specialization.hoisted,
                device,
                specialization.donated,
                self._keep_unused,
                self._compiler_options,
            )

        if has_rules_of_others(specialization.hoisted):
            return purity_hook.run_lowering(specialization.guards, compiled)
        return compiled()

    def _wanted_shardings(
        self, args: tuple, kwargs: dict[str, Any], opened: cells.Opened | None
    ) -> list[Any]:
        """What `in_shardings` says of each leaf of the arguments."""
        what = f"in_shardings of `{self._name}`"
        if kwargs:
            raise located(
                ValueError, f"{what} are for positional arguments, but {sorted(kwargs)} are passed by name"
            )
        wanted = self._in_shardings
        static = from_front(self._static_numbers, len(args))
        if isinstance(wanted, (tuple, list)) and not isinstance(wanted, PartitionSpec) and static:
            given = iter(wanted)
            wanted = tuple(None if i in static else next(given, None) for i in range(len(args)))
        dynamic, _, _ = self._split(args, kwargs)
        flat = flat_shardings(wanted, dynamic, what)
        return flat if opened is None else opened.spread(flat)

    def _placed(
        self, arrays: Sequence[Any], args: tuple, kwargs: dict[str, Any], opened: cells.Opened | None
    ) -> list[Any]:
        """The arguments, where `in_shardings` wants them."""
        placed = []
        wanted = self._wanted_shardings(args, kwargs, opened)
        for i, (x, sharding) in enumerate(zip(arrays, wanted, strict=True)):
            if sharding is not None and not isinstance(x, Tracer):
                here = x.sharding
                if x.committed and not here.is_equivalent_to(sharding, x.ndim):
                    raise located(
                        ValueError,
                        f"`{self._name}` got {x.aval.str_short()} as argument leaf {i}, committed to {here}; its "
                        f"in_shardings want {sharding}. Move it first: purax.device_put(x, sharding).",
                    )
                x = put(x, sharding)
            placed.append(x)
        return placed

    def specialize(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Specialization, list[Any]]:
        """The traced form of the function for these arguments, and their dynamic leaves."""
        return self._specialize(args, kwargs)[:2]

    def _specialize(
        self, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[Specialization, list[Any], Sequence[Any], cells.Opened | None]:
        """The traced form of the function, the dynamic leaves of the arguments, the captured arrays, and the cells
        among the arguments if there are some."""
        dynamic_args, dynamic_kwargs, static = self._split(args, kwargs)
        leaves, tree = tree_flatten((dynamic_args, dynamic_kwargs))
        opened = cells.Opened(leaves, self._name) if cells.has_cells(leaves) else None
        if opened is not None:
            leaves = opened.arrays
        try:
            avals = tuple([aval_of_argument(x) for x in leaves])
        except TypeError as error:
            arguments = (dynamic_args, dynamic_kwargs)
            raise leaf_error(self._function, arguments, error, aval_of_argument, _BY_STATIC) from None
        key: Any = (tree if opened is None else (tree, opened.layout), avals, config.trace_key, static)
        if current.trace is not eager and (axes := named_axis_sizes()):
            key = (*key, tuple(axes.items()))
        before = specialization = self._cache.get(key)
        constants: Any = None
        if before is not None:
            specialization, constants = _still_valid(before)
            use = None if specialization is None else specialization.cells
            if use is not None and not use.fits():
                before = specialization = None
            if specialization is not None:
                self._cache[key] = specialization
        if specialization is None:
            if config.explain_cache_misses:
                names = self._leaf_names(dynamic_args, dynamic_kwargs)
                changes = before.guards.changes() if before is not None else ()
                cache_misses.explain(self._function, self._argument_name, key, names, self._cache, changes)
            if config.no_tracing:
                raise located(
                    RuntimeError, f"re-tracing function {self._name} for `jit`, but 'no_tracing' is set"
                )
            start = time.perf_counter()
            specialization = self._trace(args, kwargs, dynamic_args, dynamic_kwargs, tree, avals, opened)
            if config.log_compiles:
                logger.warning("traced %s in %.3f s", self._name, time.perf_counter() - start)
            constants = specialization.constants
            use = specialization.cells
            if not any(isinstance(x, Tracer) for x in constants) and (use is None or use.is_at_home()):
                self._cache[key] = specialization
                if before is not None:
                    specialization.others = before.others
                    before.others.append(specialization)
                    del before.others[:-_MOST_OTHERS]
        return specialization, leaves, constants, opened

    def _split(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any], Any]:
        """Arguments without the static ones, and a hashable value that stands for those."""
        if self._is_plain:
            return args, kwargs, None
        static_numbers = from_front(self._static_numbers, len(args))
        dynamic_args = tuple(None if i in static_numbers else x for i, x in enumerate(args))
        dynamic_kwargs = {name: x for name, x in kwargs.items() if name not in self._static_names}
        static = tuple(
            [
                (i, Static(x, self._argument_name(i), self._name))
                for i, x in enumerate(args)
                if i in static_numbers
            ]
            + [(n, Static(x, n, self._name)) for n, x in sorted(kwargs.items()) if n in self._static_names]
        )
        return dynamic_args, dynamic_kwargs, static

    def _argument_name(self, position: int) -> str:
        names = self._parameter_names
        return names[position] if position < len(names) else f"args[{position}]"

    @phases.measured("tracing")
    def _trace(self, args, kwargs, dynamic_args, dynamic_kwargs, tree, avals, opened) -> Specialization:
        out_tree: Any = None
        use: Any = None
        captured: list[CapturedCell] = []

        def flat(function, *leaves):
            nonlocal out_tree, use
            if self._in_shardings is not None:
                wanted = self._wanted_shardings(args, kwargs, opened)
                leaves = [constrain(x, sharding) for x, sharding in zip(leaves, wanted, strict=True)]
            own: list[Any] = []
            if opened is not None:
                leaves, own = cells.close(opened.layout, leaves)
            new_args, new_kwargs = tree_unflatten(tree, leaves)
            if not self._is_plain:
                static_numbers = from_front(self._static_numbers, len(args))
                new_args = tuple(args[i] if i in static_numbers else x for i, x in enumerate(new_args))
                new_kwargs = {**{n: x for n, x in kwargs.items() if n in self._static_names}, **new_kwargs}
            results = watcher.call(function, new_args, new_kwargs, record)
            out_leaves, out_tree = tree_flatten(results)
            if self._options.get("types_only"):  # a type among the results stands for a value of it
                out_leaves = [zeros(x.aval) if type(x) is stages.ShapeDtypeStruct else x for x in out_leaves]
            returned = open_results(out_leaves, own, self._name)
            if returned is not None:
                out_leaves = results = returned.arrays
            checked = checked_results(out_leaves, results, self._name)
            if self._out_shardings is not None:
                wanted = flat_shardings(self._out_shardings, results, f"out_shardings of `{self._name}`")
                checked = [constrain(x, sharding) for x, sharding in zip(checked, wanted, strict=True)]
            layout = (None,) * len(checked) if returned is None else returned.layout
            use = CellUse(captured, own, layout, len(checked))
            return [*checked, *use.new]

        def recorded(function):
            captured.clear()
            return stage(functools.partial(flat, function), avals, self._name, names, captured)

        names = self._leaf_names(dynamic_args, dynamic_kwargs)
        donated = self._donated_leaves(dynamic_args, dynamic_kwargs)
        if opened is not None:
            names, donated = opened.spread(names), tuple(opened.spread(donated))
        purity = self._options.get("purity")
        with contextlib.nullcontext() if purity is None else config.override(purity=purity):
            watcher = purity_hook.installed.watcher
            record = watcher.begin(self._function, args, kwargs, self._static_values(args, kwargs))
            try:
                closed = record_or_rewrite(recorded, self._function)
                guards = watcher.guards(record, closed.consts)
            finally:
                watcher.end(record)
        return Specialization(closed, out_tree, donated, guards, use if use.is_needed() else None)

    def _static_values(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The arguments that the function sees as they are."""
        if self._is_plain:
            return []
        static_numbers = from_front(self._static_numbers, len(args))
        named = [x for n, x in kwargs.items() if n in self._static_names]
        return [*(x for i, x in enumerate(args) if i in static_numbers), *named]

    def _leaf_names(self, dynamic_args: tuple, dynamic_kwargs: dict[str, Any]) -> list[str]:
        """How messages call the leaves of the arguments."""
        names = self._parameter_names
        return [
            argument_name(path, names)
            for path, _ in tree_flatten_with_path((dynamic_args, dynamic_kwargs))[0]
        ]

    def _names_of(self, args: tuple, kwargs: dict[str, Any]) -> list[str]:
        """How messages call the leaves of the arguments of a call, static ones left out."""
        dynamic_args, dynamic_kwargs, _ = self._split(args, kwargs)
        return self._leaf_names(dynamic_args, dynamic_kwargs)

    def _donated_leaves(self, args: tuple, kwargs: dict[str, Any]) -> tuple[bool, ...]:
        flags: list[bool] = []
        donated = from_front(self._donated_numbers, len(args))
        for i, x in enumerate(args):
            flags.extend([i in donated] * len(tree_flatten(x)[0]))
        for name in sorted(kwargs):
            flags.extend([name in self._donated_names] * len(tree_flatten(kwargs[name])[0]))
        return tuple(flags)

    # -- stages

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """Traces the function for these arguments (arrays or `ShapeDtypeStruct`s)."""
        specialization, leaves = self.specialize(args, kwargs)
        closed = specialization.closed
        if specialization.cells is not None:
            closed = specialization.cells.own_results(closed)
            leaves = [*leaves, *specialization.cells.operands()]
        dynamic_args, dynamic_kwargs, _ = self._split(args, kwargs)
        static = from_front(self._static_numbers, len(args))
        _, in_tree = tree_flatten(
            (tuple(x for i, x in enumerate(dynamic_args) if i not in static), dynamic_kwargs)
        )
        return stages.Traced(
            self._name,
            closed,
            in_tree,
            self._leaf_names(dynamic_args, dynamic_kwargs),
            specialization.out_tree,
            specialization.donated,
            self._keep_unused,
            self._compiler_options,
            leaves,
        )

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """Traces and lowers the function to StableHLO for these arguments."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without computing them."""
        specialization, _ = self.specialize(args, kwargs)
        use = specialization.cells
        if use is None:
            return self.trace(*args, **kwargs).out_info
        shapes = [stages.struct_of(aval) for aval in use.own_results(specialization.closed).out_avals]
        return tree_unflatten(specialization.out_tree, cells.close_abstract(use.layout, shapes))

    @property
    def __signature__(self) -> inspect.Signature:
        try:
            return self._signature  # type: ignore[has-type]
        except (
            AttributeError
        ):  # kept, since `inspect` asks twice, and so would each of many around each other
            self._signature = inspect.signature(self._function)
        return self._signature

    def clear_cache(self) -> None:
        """Forgets everything traced for this function."""
        self._cache.clear()
        self._fast.clear()

    def _cache_size(self) -> int:
        return len(self._cache)

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        name = pickling.global_name(self)
        return name or (_restored, (self._function, pickling.with_devices_named(self._options)))

    def __repr__(self) -> str:
        return f"<PjitFunction of {self.__wrapped__!r}>"  # as jax prints it; libraries look for the name


def _restored(function: Any, options: dict[str, Any]) -> JitFunction:
    return JitFunction(function, pickling.with_devices_found(options))


_BY_STATIC = "Make it static (`static_argnums`/`static_argnames`) if the function should see it as it is"


class Static:
    """A static argument in a cache key: compared by type and value (`core.exact`)."""

    __slots__ = ("hash", "key", "value")

    def __init__(self, value: Any, name: str, function: str):
        self.value = value
        try:
            self.key = exact(value)
            self.hash = hash(value)
        except RecursionError:
            raise located(
                ValueError, f"the static argument {name} of `{function}` is nested too deeply to be looked up"
            ) from None
        except TypeError:
            raise located(
                ValueError,
                f"the static argument {name} of `{function}` is unhashable: {shown(value)} of type "
                f"{type(value).__name__}. Static arguments are looked up by value: pass a tuple instead of a list "
                "or an array, a frozen dataclass instead of a dict, or do not make it static.",
            ) from None

    def __hash__(self):
        return self.hash

    def __eq__(self, other):
        return type(self.value) is type(other.value) and bool(self.key == other.key)

    def __repr__(self):
        return repr(self.value)


_MOST_OTHERS = 8


def _still_valid(specialization: Specialization) -> tuple[Specialization | None, Sequence[Any] | None]:
    """The one among a specialization and its others whose guards hold, and the captured arrays as they are now."""
    if specialization.guards is None:
        return specialization, specialization.constants
    constants = specialization.guards.check()
    if constants is not None:
        return specialization, constants
    for other in reversed(specialization.others):
        constants = other.guards.check() if other.guards is not None else other.constants
        if constants is not None:
            return other, constants
    return None, None


_functions: weakref.WeakSet[Any] = weakref.WeakSet()


def clear_caches() -> None:
    """Forgets everything that was traced and compiled in this process. The disk cache stays."""
    for function in list(_functions):
        function.clear_cache()
    shared_caches.clear()
    clear_plans()
    compiled_program.clear()
    release_freed_pages()


class JitOptions(TypedDict, total=False):
    """The options of `jit`, for type checkers."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool | Inline
    compiler_options: dict[str, Any] | None
    purity: str | None
    dynamic: Any
    buckets: Any


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[JitOptions]) -> JitFunction[P, R]: ...


@overload
def jit(
    fun: None = None, /, **options: Unpack[JitOptions]
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    fun: Callable[P, R] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
    purity: str | None = None,
    dynamic: Any = None,
    buckets: Any = None,
) -> Any:
    """Compiles a function as a whole with XLA.

    Args:
        fun: a pure function of arrays, numbers and trees of them. Without it, `jit(**options)` is a decorator.
        static_argnums: positions of arguments that are Python values to the function, hashable; a new value means a new
            program.
        static_argnames: the same, by name.
        donate_argnums: positions of arguments whose memory the results may take over; they cannot be used afterwards.
        donate_argnames: the same, by name.
        keep_unused: whether arguments that nothing uses are passed to the program all the same.
        device: where to run, instead of where the arguments are.
        backend: the platform to run on, "cpu", "cuda", …
        inline: whether a call inside another traced function is merged into that function's program.
        compiler_options: flags for XLA.
        in_shardings: how the positional arguments shall lie over devices: a sharding, a `PartitionSpec` for the mesh of
            a `with mesh:` block, or a tree of them that is a prefix of the arguments; None leaves them where they are.
        out_shardings: the same for the results; None leaves it to the compiler.
        dynamic: axes whose sizes vary without another program for each: for argument names or positions an axis, a
            tuple of them, or a dict of axes with names of dimensions; or "auto", axes that were seen with two sizes.
            Calls are padded to a bucket (docs/shapes.md).
        buckets: sizes that axes are padded to, or a function of a size; powers of two by default.
        purity: what to do about side effects of `fun`: "warn", "strict" (raise) or "off"; None takes `config.purity`.

    Returns:
        A function like `fun`, with the stages of compilation as methods (`trace`, `lower`, `eval_shape`).

    >>> import purax as px, purax.numpy as jnp
    >>> f = px.jit(lambda x: jnp.sin(x) ** 2 + jnp.cos(x) ** 2)
    >>> bool(jnp.allclose(f(jnp.arange(3.0)), 1))
    True
    """
    options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "device": device if device is not None else backend,
        "inline": merges(inline),
        "compiler_options": compiler_options,
        "in_shardings": in_shardings,
        "out_shardings": out_shardings,
        "purity": None if purity is None else config.flags["purity"].check(purity),
    }
    if fun is None:
        return lambda function: jit(function, dynamic=dynamic, buckets=buckets, **options)
    require_function(fun, "jit")
    if inspect.iscoroutinefunction(fun) or inspect.isgeneratorfunction(fun):
        raise TypeError(
            f"jit cannot compile `{name_of(fun)}`: it is a generator or coroutine. Return arrays instead."
        )
    if dynamic is not None:
        for name in ("in_shardings", "out_shardings", "donate_argnums", "donate_argnames"):
            if options[name] is not None:
                raise located(
                    ValueError, f"jit: `{name}` cannot be combined with `dynamic`, whose arguments are padded"
                )
        return DynamicFunction(JitFunction(fun, options), dynamic, buckets)
    if buckets is not None:
        raise located(ValueError, "jit: `buckets` are for `dynamic` axes, and there are none")
    return JitFunction(fun, options)


def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[P, Any]:
    """The program that a function is, as a jaxpr.

    Args:
        fun: the function.
        static_argnums: positions of arguments that stay Python values.
        axis_env: names and sizes of axes that collective operations may refer to.
        return_shape: whether to return the shapes and dtypes of the results too.

    Returns:
        A function with the arguments of `fun` (arrays or `ShapeDtypeStruct`s) that returns a `ClosedJaxpr`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.make_jaxpr(lambda x: jnp.sin(x) * 2)(jnp.ones(3))
    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }
    """
    require_function(fun, "make_jaxpr")
    options = {**_DEFAULTS, "static_argnums": static_argnums}
    function = JitFunction(fun, options, shared=False)

    @wraps(fun)
    def make(*args, **kwargs):
        with named_axes(axis_env or ()):
            specialization, _ = function.specialize(args, kwargs)
        closed = specialization.closed
        if return_shape:
            use = specialization.cells
            own = closed if use is None else use.own_results(closed)
            return closed, tree_unflatten(
                specialization.out_tree, [stages.struct_of(a) for a in own.out_avals]
            )
        return closed

    return make


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a function's results, without computing them.

    Args:
        fun: the function.
        *args: arrays, numbers, `ShapeDtypeStruct`s or other objects with a shape and a dtype, or trees of them.

    Returns:
        The results of `fun` with a `ShapeDtypeStruct` for each array.

    >>> import purax as px, purax.numpy as jnp
    >>> px.eval_shape(lambda x: x @ x.T, px.ShapeDtypeStruct((1000, 3), jnp.float32))
    ShapeDtypeStruct(shape=(1000, 1000), dtype=float32)
    """
    if isinstance(fun, JitFunction):
        return fun.eval_shape(*args, **kwargs)
    require_function(fun, "eval_shape")
    return JitFunction(fun, {**_DEFAULTS, "types_only": True}, shared=False).eval_shape(*args, **kwargs)


_DEFAULTS = {
    "in_shardings": None,
    "out_shardings": None,
    "static_argnums": None,
    "static_argnames": None,
    "donate_argnums": None,
    "donate_argnames": None,
    "keep_unused": False,
    "device": None,
    "inline": False,
    "compiler_options": None,
}


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """A function whose operations carry its name, in profiles and printed programs.

    >>> import purax as px
    >>> px.make_jaxpr(px.named_call(lambda x: x + 1, name="increment"))(1).eqns[0].scope
    'increment'
    """
    require_function(fun, "named_call")
    scope = name or name_of(fun)

    @wraps(fun)
    def named(*args, **kwargs):
        with source.named_scope(scope):
            return fun(*args, **kwargs)

    return named
