"""`export`: a jitted function as StableHLO that other processes, machines and versions can run.

A program that travels calls nothing that only this process has: no kernels of ours, no Python. Arrays that the function
captured are constants of it. `Exported` holds one module per platform, and knows how its derivative is exported.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api.autodiff import vjp
from purax.api.jit import JitFunction, jit
from purax.api.stages import struct_of
from purax.callbacks.callback import CallbackPrimitive
from purax.config import config
from purax.control_flow.custom_vjp import custom_vjp
from purax.core import dtypes, effects
from purax.core.avals import ShapedArray, tangent_aval
from purax.core.dimension_solution import Solution, find, scope_of, solve
from purax.core.dimensions import DimSize, SymbolicDimension, is_symbolic_shape
from purax.core.jaxpr import ClosedJaxpr, JaxprEqn, eval_jaxpr, inner_jaxprs
from purax.core.limits import finite
from purax.core.memo import Memo
from purax.core.source import located
from purax.errors import shown
from purax.execution.placement import MeshPlace
from purax.export.call import call_exported_p
from purax.export.description import Description, check_modules, is_empty
from purax.export.kernels import refused_kernel
from purax.export.modules import Modules, PortableModule
from purax.export.serialization import from_bytes, to_bytes
from purax.export.symbolic_modules import lower_symbolic, with_sizes, written_at
from purax.interpreters.arguments import aval_of_argument, to_array
from purax.interpreters.extended_dtypes import physical, physical_aval, with_literals
from purax.interpreters.simplify import remove_dead_code
from purax.lowering.jaxpr_to_stablehlo import lower_jaxpr
from purax.random.typed_keys import random_unwrap, random_wrap
from purax.tree.registry import (
    PyTreeDef,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)
from purax.xla import client
from purax.xla.jaxlib_api import parse_module
from purax.xla.stablehlo import Module, tensor_type

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

_CUSTOM_CALL = re.compile(r'call_target_name = "([^"]*)"')


def _with_empty(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Values of the types with content, and arrays for the types without, in order."""
    given = iter(values)
    return [np.zeros(aval.shape, dtypes.float0) if is_empty(aval) else next(given) for aval in avals]


class DisabledSafetyCheck:
    """A check that `export` shall not make; made by `platform()` and `custom_call(name)`.

    >>> import purax as px
    >>> px.export.DisabledSafetyCheck.custom_call("my_kernel")
    custom_call:my_kernel
    """

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Lets the function be called on platforms that it was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Lets the function call a kernel that may be missing or different elsewhere."""
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the kernel that may be called, or None for other checks."""
        return self._impl.partition(":")[2] if self._impl.startswith("custom_call:") else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and other._impl == self._impl

    def __hash__(self) -> int:
        return hash(self._impl)

    def __repr__(self) -> str:
        return self._impl


def _argument_names(in_tree: PyTreeDef) -> list[str]:
    """How the arguments are called: `args[0]`, `kwargs['x'][1]`."""
    args, kwargs = tree_unflatten(in_tree, [0] * in_tree.num_leaves)
    paths = [path for path, _ in tree_flatten_with_path({"args": args, "kwargs": kwargs})[0]]
    return [f"{path[0].key}{keystr(path[1:])}" for path in paths]


def _may_have_shape(expected: Sequence[DimSize], given: Sequence[DimSize]) -> bool:
    """Whether shapes are the same but for dimensions that are symbolic."""
    return len(expected) == len(given) and all(
        isinstance(n, SymbolicDimension) or n == m for n, m in zip(expected, given, strict=True)
    )


def _shape(aval: ShapedArray) -> str:
    return f"({', '.join(map(str, aval.shape))}{',' * (aval.ndim == 1)})"


def _types(name: str, avals: Any) -> tuple[ShapedArray, ...]:
    """The types of the arguments or results of an exported function."""
    given = tuple(finite(avals))
    for aval in given:
        if not isinstance(aval, ShapedArray):
            raise TypeError(f"Exported: each of {name} must be a ShapedArray, got {shown(aval)}")
    return given


class Exported:
    """A function as StableHLO, for arguments of certain types.

    Made by `export` and `deserialize`.

    Attributes:
        fun_name: the name of the function.
        in_tree: the structure of (args, kwargs).
        in_avals: the types of the arguments, flat.
        out_tree: the structure of the results.
        out_avals: the types of the results, flat.
        platforms: what it was exported for.
        nr_devices: the number of devices that it runs on.
        disabled_safety_checks: the checks that were not made.
        calling_convention_version: as jax counts them.
        module_kept_var_idx: the arguments that the module takes; those without content (`float0`) are not passed.

    >>> import purax as px, purax.numpy as jnp
    >>> exported = px.export.export(px.jit(lambda x: 2 * x * x))(px.ShapeDtypeStruct((2,), jnp.float32))
    >>> exported.out_avals
    (ShapedArray(float32[2]),)
    >>> px.export.deserialize(exported.serialize()).call(jnp.array([1.0, 3.0]))
    Array([ 2., 18.], dtype=float32)
    """

    nr_devices = 1
    calling_convention_version = maximum_supported_calling_convention_version
    ordered_effects: tuple = ()
    unordered_effects: tuple = ()
    uses_global_constants = False

    def __init__(
        self,
        fun_name: str,
        in_tree: PyTreeDef,
        in_avals: Sequence[ShapedArray],
        out_tree: PyTreeDef,
        out_avals: Sequence[ShapedArray],
        modules: dict[str, PortableModule],
        disabled_safety_checks: Sequence[DisabledSafetyCheck],
        make_vjp: Callable[[], Exported] | None,
    ):
        for name, tree in (("in_tree", in_tree), ("out_tree", out_tree)):
            if not isinstance(tree, PyTreeDef):
                raise TypeError(f"Exported: {name} must be a PyTreeDef, got {shown(tree)}")
        if not isinstance(modules, dict) or not all(isinstance(m, PortableModule) for m in modules.values()):
            raise TypeError(f"Exported: modules must be a dict of modules by platform, got {shown(modules)}")
        self.fun_name = fun_name
        self.in_tree, self.in_avals = in_tree, _types("in_avals", in_avals)
        self.out_tree, self.out_avals = out_tree, _types("out_avals", out_avals)
        self.disabled_safety_checks = tuple(finite(disabled_safety_checks))
        self.platforms = tuple(modules)
        self.module_kept_var_idx = tuple(i for i, aval in enumerate(self.in_avals) if not is_empty(aval))
        any_platform = DisabledSafetyCheck.platform() in self.disabled_safety_checks
        self._modules = Modules(modules, any_platform)
        self._make_vjp = make_vjp
        self._by_sizes: Memo[Any, Exported] = Memo()

    in_shardings_hlo = property(lambda self: (None,) * len(self.in_avals))
    out_shardings_hlo = property(lambda self: (None,) * len(self.out_avals))

    def in_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """How the arguments are sharded over a mesh: it says nothing of it."""
        return self.in_shardings_hlo

    def out_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """How the results are sharded over a mesh: it says nothing of it."""
        return self.out_shardings_hlo

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    # -- the module

    def _module(self, platform: str | None) -> PortableModule:
        if platform is not None and platform not in self.platforms:
            raise located(
                ValueError, f"`{self.fun_name}` was exported for {self.platforms}, not for {shown(platform)}"
            )
        return self._modules.by_platform[platform or self.platforms[0]]

    def mlir_module(self, platform: str | None = None) -> str:
        """The program as text in StableHLO; for the first of the platforms unless told otherwise."""
        return self._module(platform).text

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program for the first of the platforms, in StableHLO's portable bytecode."""
        return self._module(None).data

    # -- calling

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function, also inside of transformations.

        Args:
            *args: as when it was exported, without static arguments.
            **kwargs: the same, by name.

        Returns:
            The results. It can be compiled as a part of other functions, and differentiated in reverse mode if
            `has_vjp()`; `vmap` calls it once for each element of the batch.
        """
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise located(
                ValueError,
                "The invocation args and kwargs must have the same pytree structure as when the function "
                f"'{self.fun_name}' was exported: {self.in_tree}; got {tree} (static arguments are not passed "
                "again)",
            )
        given = [aval_of_argument(leaf) for leaf in leaves]
        for i, (own, aval) in enumerate(zip(given, self.in_avals, strict=True)):
            if own.dtype != aval.dtype or not _may_have_shape(aval.shape, own.shape):
                raise located(self._mismatch, i, own, aval)
        arrays = [to_array(x) for x, aval in zip(leaves, self.in_avals, strict=True) if not is_empty(aval)]
        called = self
        if self._solution is not None:
            called = self._for_sizes(find(self._solution, [aval.shape for aval in given]))
        return tree_unflatten(self.out_tree, _with_empty(called._run(*arrays), called.out_avals))

    def _mismatch(self, i: int, given: ShapedArray, aval: ShapedArray) -> ValueError:
        where = _argument_names(self.in_tree)[i]
        if len(given.shape) != len(aval.shape):
            return ValueError(
                f"Rank mismatch for {where}: expected {_shape(aval)} and called with {_shape(given)}; "
                f"'{self.fun_name}' was exported for these axes alone"
            )
        what = "Dtype" if _may_have_shape(aval.shape, given.shape) else "Shape"
        return ValueError(
            f"{what} mismatch for {where} of '{self.fun_name}': expected {aval.str_short(short_dtypes=False)} and "
            f"called with {given.str_short(short_dtypes=False)}; it was exported for these types alone"
        )

    @functools.cached_property
    def _solution(self) -> Solution | None:
        """How dimension variables follow from the arguments; None if there are none."""
        shapes = [aval.shape for aval in self.in_avals]
        if scope_of(shapes) is None:
            return None
        return solve(shapes, _argument_names(self.in_tree))

    def _for_sizes(self, sizes: dict[str, DimSize]) -> Exported:
        """The function for values of its dimension variables, which may be dimensions of another function."""
        key = tuple(sizes.items())
        known = self._by_sizes.get(key)
        if known is None:
            in_avals = [with_sizes(aval, sizes) for aval in self.in_avals]
            modules = self._modules.by_platform
            if not is_symbolic_shape(sizes.values()):
                types = [tensor_type(physical_aval(aval)) for aval in in_avals if not is_empty(aval)]
                modules = {platform: self._refined(module, types) for platform, module in modules.items()}
            make_vjp = None
            if self._make_vjp is not None:
                make_vjp = lambda: self.vjp()._for_sizes(sizes)  # noqa: E731
            known = self._by_sizes[key] = Exported(
                self.fun_name,
                self.in_tree,
                in_avals,
                self.out_tree,
                [with_sizes(aval, sizes) for aval in self.out_avals],
                modules,
                self.disabled_safety_checks,
                make_vjp,
            )
            known.__dict__["_solution"] = None
            check_modules(known)
        return known

    def _refined(self, module: PortableModule, types: Sequence[str]) -> PortableModule:
        try:
            return module.refined(types)
        except ValueError as error:
            raise located(
                ValueError, f"`{self.fun_name}` cannot be called with these shapes: {error}"
            ) from None

    @functools.cached_property
    def _run(self) -> Callable[..., list[Any]]:
        """The call on those arguments and results that have content, compiled."""
        results = [aval for aval in self.out_avals if not is_empty(aval)]
        params = {
            "modules": self._modules,
            "results": tuple(map(physical_aval, results)),
            "name": self.fun_name,
        }

        def plain(*operands):
            words = [random_unwrap(x) if dtypes.is_extended(x.dtype) else x for x in operands]
            computed = call_exported_p.bind(*words, **params)
            return [
                random_wrap(y, aval.dtype) if dtypes.is_extended(aval.dtype) else y
                for y, aval in zip(computed, results, strict=True)
            ]

        def forward(*operands):
            self.vjp()  # raises if there is none
            return differentiable(*operands), operands  # itself, so that the call can be differentiated again

        def backward(operands, cotangents):
            flowing = [
                np.zeros(aval.shape, dtypes.float0) if is_empty(tangent_aval(aval)) else cotangent
                for aval, cotangent in zip(results, cotangents, strict=True)
            ]
            primals = _with_empty(operands, self.in_avals)
            found = self.vjp().call(*primals, *_with_empty(flowing, self.out_avals))
            return tuple(
                None if is_empty(tangent_aval(aval)) else cotangent
                for aval, cotangent in zip(self.in_avals, found, strict=True)
                if not is_empty(aval)
            )

        plain.__name__ = plain.__qualname__ = self.fun_name
        differentiable = custom_vjp(plain)
        differentiable.defvjp(forward, backward)
        return jit(differentiable)

    # -- derivatives

    def has_vjp(self) -> bool:
        """Whether it can be differentiated."""
        return self._make_vjp is not None

    def vjp(self) -> Exported:
        """The exported derivative: of the arguments followed by cotangents of the results, flat; it returns cotangents
        of the arguments. Integers have cotangents of dtype `float0`.

        >>> import purax as px
        >>> pullback = px.export.export(px.jit(lambda x, y: x * y))(2.0, 3.0).vjp()
        >>> [float(x) for x in pullback.call(2.0, 3.0, 1.0)]
        [3.0, 2.0]
        """
        if self._make_vjp is None:
            raise located(
                ValueError,
                f"No VJP is available for the exported `{self.fun_name}`: it was serialized without. Serialize it "
                "with `serialize(vjp_order=1)`, or more for higher derivatives.",
            )
        return self._vjp

    @functools.cached_property
    def _vjp(self) -> Exported:
        assert self._make_vjp is not None
        return self._make_vjp()

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, which `deserialize` reads.

        Args:
            vjp_order: how often it can be differentiated after that.

        Returns:
            Bytes in a format of purax's own, with a version and a check sum.
        """
        return to_bytes(self, vjp_order)


def deserialize(blob: bytes | bytearray) -> Exported:
    """The function that `Exported.serialize` made bytes of.

    Args:
        blob: the bytes.

    Returns:
        An `Exported`. Bytes that are not such, damaged, of a later version, or made up by somebody else and wrong
        raise ValueError. The program in them is read and compiled in a process of its own, so that it cannot crash
        this one; what was found is remembered on disk.

    >>> import purax as px
    >>> blob = px.export.export(px.jit(lambda x: x + 1))(1.0).serialize()
    >>> float(px.export.deserialize(blob).call(2.0))
    3.0
    """
    return from_bytes(blob, _restored)


def _restored(description: Description, modules: Sequence[PortableModule]) -> Exported:
    vjp = description.vjp
    return Exported(
        description.name,
        description.in_tree,
        description.in_avals,
        description.out_tree,
        description.out_avals,
        {platform: modules[index] for platform, index in description.platforms.items()},
        [DisabledSafetyCheck(text) for text in description.disabled],
        None if vjp is None else functools.partial(_restored, vjp, modules),
    )


def default_export_platform() -> str:
    """The platform that `export` is for if none is named: that of the default device.

    >>> import purax as px
    >>> px.export.default_export_platform() in ("cpu", "cuda", "rocm", "tpu")
    True
    """
    platform = client.platform_of(client.default_device())
    return "cuda" if platform == "gpu" else platform


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Exports a function, to be kept or run elsewhere.

    Args:
        fun_jit: a result of `jit`.
        platforms: what it shall run on, of "cpu", "cuda", "rocm" and "tpu", wherever it is exported; by default the
            platform of the default device.
        disabled_checks: checks that shall not be made.

    Returns:
        A function with the arguments of `fun_jit` (arrays or `ShapeDtypeStruct`s) that returns an `Exported`.

    >>> import purax as px, purax.numpy as jnp
    >>> f = px.jit(lambda x, *, scale: jnp.sin(x) * scale)
    >>> exported = px.export.export(f, platforms=["cpu", "tpu"])(jnp.ones(3), scale=2.0)
    >>> exported
    Exported(fun_name=<lambda>, ...)
    >>> exported.in_tree, exported.platforms
    (PyTreeDef(((*,), {'scale': *})), ('cpu', 'tpu'))
    """
    method = fun_jit.__self__ if isinstance(fun_jit, types.MethodType) else None
    function = fun_jit.__func__ if isinstance(fun_jit, types.MethodType) else fun_jit
    if not isinstance(function, JitFunction):
        raise located(
            ValueError,
            f"Function to be exported must be the result of `jit` but is: {shown(fun_jit)}; write export(jit(f))",
        )
    names = _platform_names(platforms)
    checks = tuple(finite(disabled_checks))
    for check in checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise located(TypeError, f"disabled_checks must be DisabledSafetyChecks, got {shown(check)}")

    def exported(*args: Any, **kwargs: Any) -> Exported:
        if method is not None:
            args = (method, *args)
        traced = function.trace(*args, **kwargs)
        if len(traced.jaxpr.in_avals) != traced.in_tree.num_leaves:
            raise located(
                NotImplementedError,
                f"`{traced.fun_name}` uses references from outside of it, which cannot be exported; pass their "
                "values as arguments and return the new ones",
            )
        if type(traced._place()) is MeshPlace or traced._mesh_of_types() is not None:
            raise located(
                NotImplementedError,
                f"`{traced.fun_name}` runs on several devices, which is not exported; export what one device does, "
                "with arguments without shardings, and call that under `jit` with shardings",
            )
        closed = traced.jaxpr
        signature = traced.in_tree, closed.in_avals, traced.out_tree, closed.out_avals
        return _export_program(traced.fun_name, closed, signature, names, checks)

    return exported


def _platform_names(platforms: Sequence[str] | None) -> tuple[str, ...]:
    if platforms is None:
        return (default_export_platform(),)
    if isinstance(platforms, str) or not all(isinstance(name, str) for name in platforms) or not platforms:
        raise located(
            ValueError, f"platforms must be a list of names such as ['cpu', 'cuda'], got {shown(platforms)}"
        )
    return tuple(dict.fromkeys("cuda" if name == "gpu" else name for name in platforms))


Signature = tuple[PyTreeDef, Sequence[ShapedArray], PyTreeDef, Sequence[ShapedArray]]


def _export_program(
    name: str,
    closed: ClosedJaxpr,
    signature: Signature,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    """The export of a program on those arguments and results of a signature that have content."""
    _refuse_callbacks(name, closed)
    modules: dict[str, PortableModule] = {}
    by_text: dict[str, PortableModule] = {}
    in_tree, in_avals = signature[:2]
    named = zip(_argument_names(in_tree), in_avals, strict=True)
    names = [argument for argument, aval in named if not is_empty(aval)]
    for platform in platforms:
        text = _lowered(name, closed, platform, checks, names)
        if text not in by_text:
            by_text[text] = PortableModule.from_text(text)
        modules[platform] = by_text[text]
    make_vjp = functools.partial(_export_vjp, name, closed, signature, platforms, checks)
    return Exported(name, *signature, modules, checks, make_vjp)


def _lowered(
    name: str,
    closed: ClosedJaxpr,
    platform: str,
    checks: Sequence[DisabledSafetyCheck],
    names: Sequence[str],
) -> str:
    """The program as text, which calls nothing that only this process has."""
    jaxpr = remove_dead_code(with_literals(physical(closed)))
    target = "gpu" if platform == "cuda" else platform
    shapes = [aval.shape for aval in jaxpr.in_avals]
    with config.override(native_kernels=False):
        if scope_of(shapes) is None:
            module = lower_jaxpr(ClosedJaxpr(jaxpr), platform=target)
        else:
            module = lower_symbolic(ClosedJaxpr(jaxpr), target, solve(shapes, names))
        text: str = module.text(f"jit_{name}")
        if module.dimensions is not None:
            _check_text(
                name, text, lambda: lower_symbolic(ClosedJaxpr(jaxpr), target, solve(shapes, names), True)
            )
    allowed = [own for check in checks if (own := check.is_custom_call()) is not None]
    refused = refused_kernel(set(_CUSTOM_CALL.findall(text)) - {"shape_assertion"}, allowed)
    if refused is not None:
        raise located(
            ValueError,
            f"`{name}` calls the kernel {refused!r}, which may be missing or different where the exported "
            "function runs. If it is not, say so: "
            f"export(…, disabled_checks=[DisabledSafetyCheck.custom_call({refused!r})]).",
        )
    return text


def _check_text(name: str, text: str, lower_again: Callable[[], Module]) -> None:
    """Raises for an operation whose text has a symbolic dimension where StableHLO takes a number."""
    try:
        parse_module(text)
    except Exception as error:
        module, place = lower_again(), re.search(r'"-":(\d+):', str(error))
        where = "an operation" if place is None else written_at(module, int(place[1]))
        raise located(
            NotImplementedError,
            f"`{name}` cannot be exported with symbolic shapes: StableHLO takes numbers for {where}",
        ) from None


def _refuse_callbacks(name: str, closed: ClosedJaxpr) -> None:
    found = _find_callback(closed)
    if found is not None:
        raise located(
            NotImplementedError,
            f"`{name}` calls Python ({found.primitive.name}), which cannot be exported: where the exported "
            "function runs, there may be no Python. Return the values that the callback needs instead, or leave it "
            "out of what is exported.",
            at=found.source,
        )
    unknown = closed.effects - {effects.inspection}
    if unknown:
        raise located(NotImplementedError, f"`{name}` has effects that cannot be exported: {set(unknown)}")


def _find_callback(closed: ClosedJaxpr) -> JaxprEqn | None:
    for eqn in closed.eqns:
        if isinstance(eqn.primitive, CallbackPrimitive):
            return eqn
        for inner in inner_jaxprs(eqn.params):
            found = _find_callback(inner)
            if found is not None:
                return found
    return None


def _export_vjp(
    name: str,
    closed: ClosedJaxpr,
    signature: Signature,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    """The export of (arguments, cotangents of the results) -> cotangents of the arguments."""
    moving = [not is_empty(tangent_aval(aval)) for aval in closed.in_avals]
    out_tangents = [tangent_aval(aval) for aval in closed.out_avals]

    def pullback(primals, cotangents):
        def moved(*values):
            given = iter(values)
            operands = [next(given) if moves else x for x, moves in zip(primals, moving, strict=True)]
            results = eval_jaxpr(closed.jaxpr, closed.consts, *operands)
            return [y for y, aval in zip(results, out_tangents, strict=True) if not is_empty(aval)]

        return vjp(moved, *(x for x, moves in zip(primals, moving, strict=True) if moves))[1](cotangents)

    pullback.__name__ = f"{name}_vjp"
    traced = jit(pullback).trace(
        [struct_of(aval) for aval in closed.in_avals],
        [struct_of(aval) for aval in out_tangents if not is_empty(aval)],
    )
    _, in_avals, _, out_avals = signature
    all_in_avals = (*in_avals, *map(tangent_aval, out_avals))
    all_out_avals = [tangent_aval(aval) for aval in in_avals]
    in_tree, out_tree = tree_structure(((0,) * len(all_in_avals), {})), tree_structure((0,) * len(in_avals))
    own_signature = in_tree, all_in_avals, out_tree, all_out_avals
    return _export_program(pullback.__name__, traced.jaxpr, own_signature, platforms, checks)
