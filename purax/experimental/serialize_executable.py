"""Compiled functions as bytes: the machine's own code, for the same kind of device and the same jaxlib.

`purax.export` is for other machines and later versions. What is loaded here runs as it is, so bytes of strangers must
not be.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from purax.api.stages import ArgInfo, Compiled, struct_of
from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from purax.core.source import located
from purax.execution.compiled_program import Runner
from purax.execution.placement import MeshPlace
from purax.interpreters.arguments import to_array
from purax.lowering import effort
from purax.sharding.shardings import single_device_sharding
from purax.tree.registry import tree_unflatten
from purax.xla import client, jaxlib_api
from purax.xla.compiler import load_machine_code, machine_code
from purax.xla.execute import Executable
from purax.xla.long_programs import LONG

__all__ = ["deserialize_and_load", "serialize"]

_KIND = "purax executable 1"


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled function as bytes, and the structures of its arguments and results.

    Args:
        compiled: what `jit(f).lower(...).compile()` gave, for one device and without Python callbacks.

    >>> import purax as px
    >>> from purax.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = px.jit(lambda x: x + 1).lower(1.0).compile()
    >>> deserialize_and_load(*serialize(compiled))(41.0)
    Array(42., dtype=float32, weak_type=True)
    """
    runner, traced = compiled._runner, compiled._traced
    if not isinstance(runner, Runner) or type(compiled._where) is MeshPlace:
        raise located(
            NotImplementedError,
            f"`{traced.fun_name}` was compiled for a mesh of devices; serialize the program with "
            "purax.export.export(f)(x).serialize(), which is compiled where it is loaded",
        )
    executable = runner.executable
    if type(executable) is not Executable or runner._extended is not None:
        raise located(
            NotImplementedError,
            f"`{traced.fun_name}` calls Python, or works on random keys; serialize it with purax.export",
        )
    closed = traced.jaxpr
    lowered = traced.lower()
    text = lowered._module.text("program")
    platform = client.platform_of(runner.device)
    try:
        code, options = effort.compiled(
            lambda options: (machine_code(text, runner.device, options), options),
            compiled._options,
            lambda: effort.of_program(lowered._prepared.closed.jaxpr, platform, text.count("\n")),
        )
    except jaxlib_api.EngineError as error:
        raise located(ValueError, f"`{traced.fun_name}` cannot be serialized: {error}") from None
    outputs = [
        ("literal", np.asarray(out.val, out.aval.dtype), _type(out.aval)) if type(out) is Literal else out
        for out in (runner._outputs if runner._outputs is not None else range(len(executable.out_avals)))
    ]
    content = {
        "kind": _KIND,
        "code": code,
        "text": text,
        "options": options,
        "platform": platform,
        "name": traced.fun_name,
        "leaf_names": list(traced.leaf_names),
        "in_types": [_type(a) for a in closed.in_avals],
        "out_types": [_type(a) for a in closed.out_avals],
        "engine_types": [_type(a) for a in executable.out_avals],
        "constants": [np.asarray(c) for c in closed.consts],
        "kept": list(runner._kept),
        "outputs": outputs,
        "donated": list(runner._taken),
        "engine_donated": list(executable.donated),
        "given": list(traced._donated or ()),
    }
    return pickle.dumps(content), compiled.in_tree, compiled.out_tree


def _type(aval: Any) -> tuple[tuple[int, ...], str, bool]:
    return tuple(aval.shape), dtypes.dtype_name(aval.dtype), bool(aval.weak_type)


def _aval(kind: tuple[tuple[int, ...], str, bool]) -> ShapedArray:
    return ShapedArray(kind[0], dtypes.as_exact_dtype(kind[1]), kind[2])


class LoadedFunction(Compiled):
    """A compiled function that was loaded from bytes; call it with arguments of its types."""

    def __init__(self, content: dict[str, Any], in_tree: Any, out_tree: Any, device: Any):
        self.in_tree, self.out_tree = in_tree, out_tree
        self._where, self._options = device, ()
        self._avals = [_aval(kind) for kind in content["in_types"]]
        constants = [to_array(c) for c in content["constants"]]
        out_avals = [_aval(kind) for kind in content["out_types"]]
        invars, constvars = [Var(a) for a in self._avals], [Var(c.aval) for c in constants]
        closed = ClosedJaxpr(Jaxpr(constvars, invars, [Var(a) for a in out_avals], []), constants)
        given = content["given"] or [False] * len(invars)
        infos = [ArgInfo(a, bool(d)) for a, d in zip(self._avals, given[-len(invars) :], strict=False)]
        self._traced: Any = SimpleNamespace(
            fun_name=content["name"],
            leaf_names=content["leaf_names"],
            jaxpr=closed,
            in_tree=in_tree,
            out_tree=out_tree,
            _donated=content["given"],
            args_info=tree_unflatten(in_tree, infos),
            out_info=tree_unflatten(out_tree, [struct_of(a) for a in out_avals]),
            in_avals=tree_unflatten(in_tree, self._avals),
            out_avals=tree_unflatten(out_tree, out_avals),
            donate_argnums=tuple(i for i, d in enumerate(given) if d),
        )
        loaded = load_machine_code(content["code"], content["text"], device, content["options"])
        types = [_aval(kind) for kind in content["engine_types"]]
        shardings = (single_device_sharding(device),) * len(types)
        executable = Executable(loaded, types, shardings, (device,), content["engine_donated"], LONG)
        prepared: Any = SimpleNamespace(
            kept=content["kept"],
            in_avals=[*(c.aval for c in constants), *self._avals],
            out_avals=out_avals,
            extended=None,
            donated=tuple(content["donated"]),
            outputs=[_output(out) for out in content["outputs"]],
        )
        self._runner = Runner(prepared, executable, device)

    def _on(self, device: Any, ahead: bool = False) -> Any:
        return self._runner

    def _place_of(self, operands: Sequence[Any]) -> tuple[Any, Any, bool]:
        return self._where, None, False


def _output(out: Any) -> Any:
    return Literal(out[1], _aval(out[2])) if isinstance(out, tuple) else out


def deserialize_and_load(
    serialized: bytes,
    in_tree: Any,
    out_tree: Any,
    backend: Any = None,
    execution_devices: Sequence[Any] | None = None,
) -> Compiled:
    """The compiled function that `serialize` wrote. It runs machine code: load only bytes that you trust.

    Args:
        serialized: the bytes.
        in_tree: the structure of the arguments.
        out_tree: the structure of the results.
        backend: the platform, or a client; that of the bytes when left out.
        execution_devices: one device; the first of the platform when left out.
    """
    content = pickle.loads(serialized)
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise located(
            ValueError, "deserialize_and_load: these are not the bytes of a function that `serialize` wrote"
        )
    platform = content["platform"] if backend is None else getattr(backend, "platform", backend)
    devices = list(execution_devices) if execution_devices is not None else client.devices(platform)[:1]
    if len(devices) != 1:
        raise located(
            ValueError, f"deserialize_and_load: the function runs on one device, got {len(devices)}"
        )
    return LoadedFunction(content, in_tree, out_tree, devices[0])
