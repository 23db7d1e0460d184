"""`autotune`: finds the fastest of several sizes of blocks by trying them, once for each device and type of arguments.

What was found is kept on disk beside compiled programs (`config.compilation_cache_dir`), and for the process.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from purax.api.jit import jit
from purax.config import config
from purax.core.avals import aval_of
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.primitives.shape.broadcasting import zeros
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla import client, disk_cache

_REPEATS = 3


def autotune(
    configurations: Sequence[Mapping[str, Any]], *, directory: str | os.PathLike[str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function is called with those keyword arguments with which it is fastest.

    The first call with arguments of some types compiles and times the function for each configuration, on arrays of
    zeros; later calls, also of other processes, take what was found. Configurations that raise are left out.

    Args:
        configurations: dicts of keyword arguments, such as `{"block": 128}`.
        directory: where what was found is kept; by default beside compiled programs, where these are kept.

    Returns:
        The decorator. The function that it returns has a method `best(*args)`, the configuration for such arguments.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def double_kernel(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> @pl.autotune([{"block": 8}, {"block": 32}])
    ... def double(x, block):
    ...     spec = pl.BlockSpec((block,), lambda i: i)
    ...     shape = px.ShapeDtypeStruct(x.shape, x.dtype)
    ...     grid = (x.size // block,)
    ...     return pl.pallas_call(double_kernel, shape, grid=grid, in_specs=[spec], out_specs=spec)(x)
    >>> double(jnp.ones(64)).sum()
    Array(128., dtype=float32)
    >>> double.best(jnp.ones(64))["block"] in (8, 32)
    True
    """
    for each in configurations:
        if not isinstance(each, Mapping):
            raise located(
                TypeError, f"autotune: configurations are dicts of keyword arguments, got {shown(each)}"
            )
    choices = [dict(each) for each in configurations]
    if not choices:
        raise located(ValueError, "autotune needs a configuration at least, got none")

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        known: dict[Any, int] = {}

        def best(*args: Any, **kwargs: Any) -> dict[str, Any]:
            leaves, tree = tree_flatten((args, kwargs))
            avals = [aval_of(to_array(x)) for x in leaves]
            key = (tree, tuple(avals), config.enable_x64)
            if key not in known:
                types = [aval.str_short() for aval in avals]
                name = _key(function, choices, str(tree), types)
                found = _read(directory, name, len(choices))
                if found is None:
                    found = _fastest(function, choices, tree, avals)
                    _write(directory, name, found)
                known[key] = found
            return choices[known[key]]

        @functools.wraps(function)
        def tuned(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs, **best(*args, **kwargs))

        tuned.best = best  # type: ignore[attr-defined]
        return tuned

    return decorated


def _key(function: Callable, choices: Sequence[Mapping[str, Any]], tree: str, types: Sequence[str]) -> str:
    """The name of a question: the function, the choices, the types and the device."""
    code = getattr(function, "__code__", None)
    own = (
        code.co_code.hex() + repr([c for c in code.co_consts if isinstance(c, (int, float, str))])
        if code
        else ""
    )
    device = client.default_device()
    parts = [
        f"{function.__module__}.{function.__qualname__}",
        own,
        repr([sorted(each.items()) for each in choices]),
        tree,
        *types,
        client.platform_of(device),
        str(getattr(device, "device_kind", "")),
        str(os.cpu_count()),
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _fastest(
    function: Callable, choices: Sequence[Mapping[str, Any]], tree: Any, avals: Sequence[Any]
) -> int:
    """The number of the configuration with which a function takes the least time."""
    times: list[float] = []
    errors: list[BaseException] = []
    for each in choices:
        try:
            times.append(_time(functools.partial(function, **each), tree, avals))
        except Exception as error:  # a configuration that does not fit the arguments
            times.append(float("inf"))
            errors.append(error)
    if min(times) == float("inf"):
        raise located(
            ValueError,
            f"autotune: `{function.__name__}` raises with all {len(choices)} configurations; with the first: "
            f"{errors[0]}",
        ) from errors[0]
    return times.index(min(times))


def _time(function: Callable, tree: Any, avals: Sequence[Any]) -> float:
    """The seconds that a call takes, compiled, at best."""
    arrays = [zeros(aval) for aval in avals]
    args, kwargs = tree_unflatten(tree, arrays)
    compiled = jit(lambda *a, **k: function(*a, **k))

    def run() -> None:
        for y in tree_flatten(compiled(*args, **kwargs))[0]:
            if not isinstance(y, Tracer):
                y.block_until_ready()

    run()
    least = float("inf")
    for _ in range(_REPEATS):
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least


def _folder(directory: Any) -> Path | None:
    if directory is not None:
        return Path(directory)
    own = disk_cache.folder() if config.enable_compilation_cache else None
    return Path(own) / "autotune" if own else None


def _read(directory: Any, name: str, count: int) -> int | None:
    folder = _folder(directory)
    if folder is None:
        return None
    try:
        found = json.loads((folder / f"{name}.json").read_text())["best"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, int) and 0 <= found < count else None


def _write(directory: Any, name: str, found: int) -> None:
    folder = _folder(directory)
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{name}.{os.getpid()}.partial"
        partial.write_text(json.dumps({"best": found}))
        partial.replace(folder / f"{name}.json")
    except OSError:
        return  # what cannot be kept is found again
