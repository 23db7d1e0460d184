"""The stages of ahead-of-time compilation: `jit(f).trace(x)` -> `Traced` -> `.lower()` -> `Lowered` -> `.compile()`
-> `Compiled`, each to look at and, at the end, to call.
"""

from __future__ import annotations

from typing import Any

from purax.api import pickling
from purax.api.nan_reports import look_at_results
from purax.core import display, dtypes
from purax.core.avals import ShapedArray
from purax.core.dimensions import as_size
from purax.core.jaxpr import ClosedJaxpr
from purax.core.limits import finite
from purax.core.manual_axes import varying_of
from purax.core.source import located
from purax.core.specs import PartitionSpec
from purax.core.trace import Tracer
from purax.errors import shown
from purax.execution import compiled_program
from purax.execution.mesh_programs import lower_over, place_program, wanted_specs
from purax.execution.placement import MeshPlace, spec_of_type
from purax.interpreters.arguments import aval_of_argument, to_array
from purax.interpreters.simplify import hoist_constants
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla import client, jaxlib_api
from purax.xla.array import DeviceArray, PlacedArray
from purax.xla.collective_report import Collective, collectives_of
from purax.xla.layout import format_of


class ShapeDtypeStruct:
    """The shape and dtype of an array, standing for it where only these matter.

    >>> import purax as px
    >>> px.ShapeDtypeStruct((2, 3), px.numpy.float32)
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("aval", "is_ref", "sharding")

    def __init__(
        self,
        shape,
        dtype,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: Any = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct needs a dtype, got None")
        typed = sharding if hasattr(sharding, "as_type") else None
        sizes = tuple(map(as_size, finite(shape)))
        vma = frozenset() if manual_axis_type is None else varying_of(manual_axis_type)
        self.aval = ShapedArray(sizes, dtypes.as_exact_dtype(dtype), weak_type, vma, sharding=typed)
        self.sharding = sharding
        self.is_ref = is_ref

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)
    manual_axis_type = property(lambda self: self.aval.manual_axis_type)
    vma = property(lambda self: self.aval.vma)

    @staticmethod
    def like(x: Any) -> ShapeDtypeStruct:
        """The shape, dtype and sharding of an array, a tracer, or another `ShapeDtypeStruct`.

        >>> import purax as px
        >>> px.ShapeDtypeStruct.like(px.numpy.ones((2, 3)))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        if isinstance(x, ShapeDtypeStruct):
            return x
        aval = aval_of_argument(x)
        # Where an uncommitted array is says nothing about where others are to be.
        sharding = getattr(x, "sharding", None) if getattr(x, "committed", False) else None
        return ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        fields = {
            "shape": self.shape,
            "dtype": self.dtype,
            "sharding": self.sharding,
            "weak_type": self.weak_type,
            "manual_axis_type": self.manual_axis_type,
            "is_ref": self.is_ref,
        }
        return ShapeDtypeStruct(**{**fields, **changes})

    def __len__(self) -> int:
        return len(self.aval)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return self.aval is other.aval and self.sharding == other.sharding and self.is_ref == other.is_ref

    def __hash__(self) -> int:
        return hash((self.aval, self.sharding))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        ref = ", is_ref=True" if self.is_ref else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.dtype_name(self.dtype)}{sharding}{weak}{ref})"


def struct_of(aval: ShapedArray) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


class ArgInfo:
    """An argument of a function that is compiled ahead: its type, and whether its memory is given away.

    >>> import purax as px
    >>> px.jit(lambda x: x, donate_argnums=0).lower(px.numpy.ones(2)).args_info[0][0].donated
    True
    """

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: ShapedArray, donated: bool):
        self._aval, self.donated = _aval, donated

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)
    ndim = property(lambda self: self._aval.ndim)
    size = property(lambda self: self._aval.size)
    weak_type = property(lambda self: self._aval.weak_type)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ShapeDtypeStruct):
            return struct_of(self._aval) == other
        return isinstance(other, ArgInfo) and (self._aval, self.donated) == (other._aval, other.donated)

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


CompilerOptions = dict[str, Any]


class Traced:
    """A function traced for certain argument types."""

    def __init__(
        self,
        name,
        closed: ClosedJaxpr,
        in_tree,
        leaf_names,
        out_tree,
        donated,
        keep_unused,
        compiler_options,
        leaves,
    ):
        self.fun_name = name
        self.jaxpr = closed
        self.in_tree = in_tree
        self.leaf_names = leaf_names
        self.out_tree = out_tree
        self._donated = donated
        self._keep_unused = keep_unused
        self._compiler_options = compiler_options
        self._hoisted = hoist_constants(closed)
        self._stand_ins = [_stand_in(x, aval) for x, aval in zip(leaves, closed.in_avals, strict=True)]

    def __reduce__(self) -> Any:
        places = [x.sharding if type(x) is PlacedArray else None for x in self._stand_ins]
        leaves = [
            ShapeDtypeStruct(a.shape, a.dtype, sharding=place)
            for a, place in zip(self.jaxpr.in_avals, places, strict=True)
        ]
        return Traced, (
            self.fun_name, pickling.compilable(self.jaxpr), self.in_tree, self.leaf_names, self.out_tree, self._donated,
            self._keep_unused, self._compiler_options, leaves,
        )  # fmt: skip

    def _place(self) -> Any:
        """Where the program runs for arguments like those that it was traced for."""
        operands = [*self.jaxpr.consts, *self._stand_ins]
        return place_program(self._hoisted, operands, f"`{self.fun_name}`")[0]

    def _mesh_of_types(self) -> Any:
        """The shape of the mesh that types of arguments say these are sharded over, or None."""
        return next((a.layout.mesh for a in self.jaxpr.in_avals if a.layout is not None), None)

    @property
    def in_avals(self) -> Any:
        return tree_unflatten(self.in_tree, self.jaxpr.in_avals)

    @property
    def out_avals(self) -> Any:
        """The types of the results."""
        return tree_unflatten(self.out_tree, self.jaxpr.out_avals)

    @property
    def args_info(self) -> Any:
        """The types of the arguments, and which are given away."""
        consts = len(self.jaxpr.consts)  # which come first, and are never given away
        given = self._donated[consts:] if self._donated else [False] * len(self.jaxpr.in_avals)
        infos = [ArgInfo(a, bool(d)) for a, d in zip(self.jaxpr.in_avals, given, strict=True)]
        return tree_unflatten(self.in_tree, infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The positions, among the leaves, of the arguments that are given away."""
        return tuple(i for i, info in enumerate(tree_flatten(self.args_info)[0]) if info.donated)

    @property
    def out_info(self) -> Any:
        """The shapes and dtypes of the results."""
        return tree_unflatten(self.out_tree, [struct_of(aval) for aval in self.jaxpr.out_avals])

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """Lowers the program to StableHLO, for the default device's platform unless told otherwise."""
        return Lowered(
            self, lowering_platforms[0] if lowering_platforms else client.platform_of(client.default_device())
        )

    def __repr__(self) -> str:
        return f"<Traced {self.fun_name}>\n{self.jaxpr}"

    def _repr_html_(self) -> str:
        return display.framed(f"Traced {self.fun_name}", display.program_html(str(self.jaxpr)))


def _arguments_html(traced: Traced) -> str:
    """The arguments and results of a program as a table."""
    results = [(f"result {i}", aval.str_short()) for i, aval in enumerate(traced.jaxpr.out_avals)]
    given = zip(traced.leaf_names, traced.jaxpr.in_avals, strict=False)
    return display.table([*((name, aval.str_short()) for name, aval in given), *results], ("array", "type"))


class CostAnalysis(dict):
    """The compiler's estimate of one call's work; a notebook shows a table."""

    def _repr_html_(self) -> str:
        rows = [(key, float(value)) for key, value in self.items() if "{" not in key and value >= 0]
        return display.table(sorted(rows), ("cost of a call", ""))


class MemoryAnalysis:
    """The memory of a compiled program, as XLA reports it; a notebook shows a table.

    >>> import purax as px
    >>> px.jit(lambda x: x + 1).lower(px.numpy.ones(8)).compile().memory_analysis().argument_size_in_bytes
    32
    """

    def __init__(self, stats: Any):
        self._stats = stats

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_stats":
            raise AttributeError(name)
        return getattr(self._stats, name)

    def __repr__(self) -> str:
        return repr(self._stats)

    def _repr_html_(self) -> str:
        fields = [name for name in dir(self._stats) if name.endswith("_size_in_bytes")]
        rows = [(name.removesuffix("_size_in_bytes").replace("_", " "), getattr(self._stats, name)) for name in fields]
        return display.table([(name, display.size_text(size)) for name, size in rows if size], ("memory", ""))


def _stand_in(x: Any, aval: ShapedArray) -> DeviceArray:
    """An array without a value that says where an argument lies, if it must stay there."""
    sharding = x.sharding if isinstance(x, ShapeDtypeStruct) or getattr(x, "committed", False) else None
    if isinstance(sharding, jaxlib_api.EngineSharding) and sharding.device_set:
        return PlacedArray(aval, None, sharding, True)
    return DeviceArray(aval)


_PLAIN = "tpu"  # a platform whose programs have neither kernels of our own nor formulas for what XLA has operations for


class Lowered:
    """A function lowered to StableHLO."""

    def __init__(self, traced: Traced, platform: str):
        self._traced = traced
        self._platform = platform
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self._prepared = compiled_program.prepare(traced._hoisted, traced._donated, traced._keep_unused)
        self._where = traced._place()
        self._module = self._lower(debug_info=False)

    def _lower(self, debug_info: bool, platform: str | None = None) -> Any:
        prepared, where = self._prepared, self._where
        platform = platform or self._platform
        if type(where) is MeshPlace:
            specs = wanted_specs(prepared.closed, where.mesh)
            return lower_over(prepared, where, specs, debug_info)
        if (mesh := self._traced._mesh_of_types()) is not None:
            in_specs = [PartitionSpec(*aval.spec) for aval in prepared.closed.in_avals]
            out_specs = [spec_of_type(aval, mesh) for aval in prepared.closed.out_avals]
            return prepared.lower(platform, mesh, in_specs, out_specs, debug_info)
        return prepared.lower(platform, debug_info=debug_info)

    def __reduce__(self) -> Any:
        return Lowered, (self._traced, self._platform)

    args_info = property(lambda self: self._traced.args_info)
    out_info = property(lambda self: self._traced.out_info)
    in_avals = property(lambda self: self._traced.in_avals)
    out_avals = property(lambda self: self._traced.out_avals)
    donate_argnums = property(lambda self: self._traced.donate_argnums)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: in StableHLO, or in HLO, which the compiler makes of it first, if `dialect` is "hlo".

        With `debug_info` operations carry the lines of the function that they come from.

        >>> import purax as px
        >>> print(px.jit(lambda x: 2 * x).lower(1.0).as_text())
        module @program {
          func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
            %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
            %0 = stablehlo.multiply %cst, %arg0 : tensor<f32>
            return %0 : tensor<f32>
          }
        }
        <BLANKLINE>
        """
        text = (self._lower(True) if debug_info else self._module).text(self._name())
        if dialect == "hlo":
            return jaxlib_api.hlo_computation(text).as_hlo_text()
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"as_text: the dialect is 'stablehlo' or 'hlo', got {shown(dialect)}")
        return jaxlib_api.pretty_module(text, debug_info)

    def _name(self) -> str:
        return self._traced.fun_name if self._traced.fun_name.isidentifier() else "program"

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program in the compiler's input language: StableHLO as text, or XLA's computation for "hlo"."""
        text = self.as_text(None if dialect == "hlo" else dialect)
        return jaxlib_api.hlo_computation(text) if dialect == "hlo" else text

    def _repr_html_(self) -> str:
        shown = _arguments_html(self._traced)
        return display.framed(f"Lowered {self._traced.fun_name}", shown, display.folded("StableHLO", self.as_text()))

    def cost_analysis(self) -> dict[str, Any]:
        """The compiler's estimate of one call's work, from the operations as they are written; nothing is compiled.

        >>> import purax as px, purax.numpy as jnp
        >>> int(px.jit(jnp.dot).lower(jnp.ones((4, 5)), jnp.ones((5, 6))).cost_analysis()["flops"])  # 2 · 4 · 5 · 6
        240
        """
        try:
            module = self._lower(debug_info=False, platform=_PLAIN)
        except (NotImplementedError, TypeError, ValueError):  # a call of what is there on this platform alone
            module = self._module
        return jaxlib_api.cost_of(module.text(self._name()), client.default_device().client)

    def compile(self, compiler_options: dict[str, Any] | None = None) -> Compiled:
        """Compiles the program."""
        options = dict(self._traced._compiler_options)
        options.update(compiler_options or {})
        return Compiled(self._traced, tuple(sorted(options.items())))


class Compiled:
    """A compiled function; call it with arguments of the types it was compiled for."""

    def __init__(self, traced: Traced, options: tuple):
        self._traced = traced
        self._options = options
        self._avals = traced.jaxpr.in_avals
        self.in_tree, self.out_tree = traced.in_tree, traced.out_tree
        self._where = traced._place()
        if type(self._where) is not MeshPlace and (mesh := traced._mesh_of_types()) is not None:
            raise located(
                ValueError,
                f"`{traced.fun_name}` was lowered for {shown(mesh)}, the shape of a mesh without devices. To "
                "compile, "
                "give the arguments shardings over a Mesh, or write `with purax.set_mesh(mesh):` around them.",
            )
        self._runner = self._on(self._where, ahead=True)

    def __reduce__(self) -> Any:
        """The program is pickled, not the machine code: it is compiled where it is loaded, or found on that disk."""
        return Compiled, (self._traced, self._options)

    def _on(self, device: Any, ahead: bool = False) -> compiled_program.Runner | compiled_program.MeshRunner:
        traced = self._traced
        return compiled_program.runner(
            traced._hoisted, device, traced._donated, traced._keep_unused, self._options, ahead
        )

    args_info = property(lambda self: self._traced.args_info)
    out_info = property(lambda self: self._traced.out_info)
    in_avals = property(lambda self: self._traced.in_avals)
    out_avals = property(lambda self: self._traced.out_avals)
    donate_argnums = property(lambda self: self._traced.donate_argnums)

    def __call__(self, *args, **kwargs) -> Any:
        leaves, tree = tree_flatten((args, kwargs))
        name = self._traced.fun_name
        if tree != self.in_tree:
            raise located(
                TypeError,
                f"the compiled `{name}` takes arguments of structure {self.in_tree}, got {tree} (static arguments "
                "are not passed again)",
            )
        for x, aval, leaf in zip(leaves, self._avals, self._traced.leaf_names, strict=True):
            if isinstance(x, Tracer):
                raise located(
                    TypeError,
                    f"the compiled `{name}` was called inside a transformation, with {x.describe()} as "
                    f"{leaf}; compiled code cannot be transformed. Call the `jit` function itself.",
                )
            given = aval_of_argument(x)
            if given.shape != aval.shape or given.dtype != aval.dtype:
                raise located(
                    TypeError,
                    f"the compiled `{name}` takes {aval.str_short()} as {leaf}, got {given.str_short()}; call the "
                    "`jit` function itself for other types",
                )
        arrays = [*map(to_array, leaves)]
        operands = [*self._traced.jaxpr.consts, *arrays]
        if type(self._where) is MeshPlace:
            results = self._runner(operands)
        else:
            device, placement, committed = self._place_of(operands)
            results = self._on(device)(operands, placement, committed)
        look_at_results(name, self._traced.jaxpr, arrays, results)
        return tree_unflatten(self.out_tree, results)

    def _place_of(self, operands: Any) -> tuple[Any, Any, bool]:
        return place_program(self._traced._hoisted, operands, f"`{self._traced.fun_name}`")

    def as_text(self) -> str:
        """The optimized program, in HLO."""
        return self._runner.executable.hlo_text()

    def cost_analysis(self) -> dict[str, Any]:
        """The compiler's estimate of one call's work: flops, bytes accessed, …"""
        return CostAnalysis(self._runner.executable.cost_analysis())

    def memory_analysis(self) -> Any:
        """Sizes in bytes of code, arguments, results and temporary memory, as attributes."""
        return MemoryAnalysis(self._runner.executable.memory_analysis())

    def _repr_html_(self) -> str:
        parts = [self.memory_analysis()._repr_html_(), self.cost_analysis()._repr_html_()]  # type: ignore[attr-defined]
        return display.framed(f"Compiled {self._traced.fun_name}", *parts, display.folded("HLO", self.as_text()))

    def collectives(self) -> list[Collective]:
        """What devices send each other in one call: the collective operations, their bytes, how often they run.

        >>> import purax as px
        >>> px.jit(lambda x: x + 1).lower(1.0).compile().collectives()
        []
        """
        return collectives_of(self.as_text())

    def runtime_executable(self) -> Any:
        """XLA's executable."""
        return self._runner.executable

    @property
    def input_shardings(self) -> Any:
        first = len(self._traced.jaxpr.consts)
        return tree_unflatten(self.in_tree, self._runner.in_shardings[first:])

    @property
    def output_shardings(self) -> Any:
        return tree_unflatten(self.out_tree, self._runner.out_shardings)

    @property
    def input_formats(self) -> Any:
        """How the arguments lie in memory and over devices."""
        leaves = tree_flatten(self.input_shardings)[0]
        avals = self._traced.jaxpr.in_avals
        return tree_unflatten(self.in_tree, [format_of(a, s) for a, s in zip(avals, leaves, strict=True)])

    @property
    def output_formats(self) -> Any:
        """How the results lie in memory and over devices."""
        leaves = tree_flatten(self.output_shardings)[0]
        avals = self._traced.jaxpr.out_avals
        return tree_unflatten(self.out_tree, [format_of(a, s) for a, s in zip(avals, leaves, strict=True)])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The function; as calling the object."""
        return self(*args, **kwargs)
