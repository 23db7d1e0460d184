"""Code that runs beside a device: on its host, or on a stream of its own. Where no such place is it runs as usual."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from purax.control_flow.annotated_call import annotated_call, compute_on_p
from purax.core.metadata import Metadata, metadata_scope
from purax.core.source import located
from purax.errors import shown
from purax.tree.registry import tree_flatten

__all__ = ["compute_on", "compute_on2"]


def _metadata(compute_type: str) -> Metadata:
    if compute_type == "device_host":
        return (("_xla_compute_type", "host"),)
    if compute_type == "device":
        return ()
    if compute_type == "tpu_sparsecore":
        return (("_xla_compute_type", "sparse"),)
    if isinstance(compute_type, str) and (found := re.fullmatch(r"gpu_stream:(\d+)", compute_type)):
        return (("_scheduling_group_id", found[1]), ("_xla_stream_annotation", found[1]))
    raise located(
        ValueError,
        f"compute_on: Invalid compute type {shown(compute_type)}. Current supported values are `device_host`, "
        "`device`, `tpu_sparsecore`, and `gpu_stream:#`.",
    )


def compute_on(compute_type: str) -> Any:
    """A context whose operations run where `compute_type` says.

    Args:
        compute_type: "device_host", "device", "tpu_sparsecore" or "gpu_stream:#".

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.compute_on import compute_on
    >>> @px.jit
    ... def f(x):
    ...     with compute_on("device_host"):
    ...         return x * 2
    >>> '_xla_compute_type = "host"' in f.lower(1.0).as_text(), float(f(3.0))
    (True, 6.0)
    """
    return metadata_scope(_metadata(compute_type))


def compute_on2(
    f: Callable | None = None, *, compute_type: str, out_memory_spaces: Any, compiler_options: Any = None
) -> Callable:
    """A function as a call that runs where `compute_type` says.

    Args:
        f: the function; left out, the result is a decorator.
        compute_type: as in `compute_on`.
        out_memory_spaces: a `purax.memory.Space` for each result, or one for all: only `Space.Device`.
        compiler_options: only None: one program has one set of options.
    """
    metadata = _metadata(compute_type)
    _require_device(out_memory_spaces, "compute_on2", tree_flatten(out_memory_spaces)[0])
    if compiler_options is not None:
        raise located(
            NotImplementedError,
            f"compute_on2: compiler_options={shown(compiler_options)} would hold for a part of a program; give "
            "them to `purax.jit` around it",
        )
    if f is None:
        return lambda f: annotated_call(compute_on_p, f, metadata)
    return annotated_call(compute_on_p, f, metadata)


def _require_device(given: Any, caller: str, spaces: list[Any]) -> None:
    if any(getattr(space, "name", None) not in ("Device", "Any") for space in spaces):
        raise located(
            NotImplementedError,
            f"{caller}: results stay in the device's memory, out_memory_spaces={shown(given)}; move them with "
            "purax.device_put",
        )
