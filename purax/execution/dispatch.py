"""`Dispatch`: how a call of a compiled function finds its program and runs it, when nothing new has to be done.

What a program is found by (its *key*) are the settings that change programs, the types of the arrays, static values
and, where arguments are trees, their structure. The class exists twice: in C (`_dispatch.c`, half the cost), and here
for installations without a compiler. Everything that is not the common case is left to `_call` of the function.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from purax.config import config
from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.exact import exact, exact_in_python
from purax.core.trace import current
from purax.execution.compiled_program import Runner
from purax.execution.eager import eager
from purax.interpreters.arguments import array_of_leaf, from_front, to_array
from purax.tree.registry import leaf_treedef, registry_flatten, tree_flatten, tree_unflatten
from purax.xla import client, execute, jaxlib_api
from purax.xla.aligned_memory import SMALL, aligned_empty
from purax.xla.array import DeviceArray, PlacedArray

try:
    from purax.execution import _dispatch as native  # type: ignore[attr-defined]

    _ = native.set_exact
except (ImportError, AttributeError):  # it was not compiled when purax was installed, or from other sources
    native = None

_ARRAYS = (DeviceArray, PlacedArray)
_NUMBERS = (float, int, np.ndarray)


class Entry(NamedTuple):
    """A compiled program and what calling it needs; `_dispatch.c` reads the fields by position.

    `out_tree` is None where the result is one array. `execute` is None for programs over many devices, which `runner`
    runs; the fields after it are those of a `Runner`. `witness` is the number of a small result of a program that reads
    its arguments only until its results are there; None of one that may keep them.
    """

    guards: Any
    constants: list[Any]
    out_tree: Any
    runner: Any
    execute: Any = None
    handlers: Any = None
    avals: Any = None
    kept: tuple[int, ...] | None = None
    taken: tuple[int, ...] = ()
    donated: tuple[int, ...] = ()
    device: Any = None
    is_arranged: bool = False
    witness: int | None = None


def make_entry(guards: Any, constants: Sequence[Any], out_tree: Any, runner: Any) -> Entry:
    """The entry of a program that a call was found to need."""
    tree = None if out_tree == leaf_treedef else out_tree
    if type(runner) is not Runner or runner.has_placed_results:
        return Entry(guards, list(constants), tree, runner)
    return Entry(guards, list(constants), tree, runner, *runner.parts())


class PythonDispatch:
    """A function that calls the program compiled for its arguments: the base of `JitFunction`."""

    __slots__ = ("_as_array", "_fast", "_static_keywords", "_static_positions")
    _fast: dict[Any, Entry]

    def _set_static(self, positions: tuple[int, ...], names: frozenset[str], donates: bool) -> None:
        """Which arguments are Python values to the function, and whether it takes over memory of others."""
        self._fast = {}
        self._static_positions, self._static_keywords = positions, names
        # An array that is given away must not be one that other calls with the same number use.
        self._as_array = to_array if donates else array_of_leaf

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The whole call, tracing and compiling where needed."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current.trace is eager and self._fast:
            try:
                leaves, key = self._sign(args, kwargs)
                entry = self._fast.get(key)
            except Exception:  # an argument that is not an array, or not hashable: the slow way says so
                entry = None
            if entry is not None:
                constants = entry.constants if entry.guards is None else entry.guards.check()
                if constants is not None:  # nothing that the function reads has changed
                    results = entry.runner.run_at_home([*constants, *leaves] if constants else leaves)
                    if results is not None:
                        tree = entry.out_tree
                        return results[0] if tree is None else tree_unflatten(tree, results)
        return self._call(args, kwargs)

    def _key(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What the program of a call is found by; None if an argument is not an array, or not hashable."""
        try:
            key = self._sign(args, kwargs)[1]
            hash(key)
        except Exception:
            return None
        return key

    def _sign(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Sequence[Any], Any]:
        """The dynamic leaves of a call, as arrays, and its key."""
        key: list[Any] = [config.trace_key]
        static = self._static_positions
        if not static and not kwargs:
            for x in args:
                if type(x) is not DeviceArray:
                    break
                key.append(x.aval)
            else:
                return args, tuple(key)
            key = key[:1]
        elif static:
            static = from_front(static, len(args))
        leaves = []
        for i, x in enumerate(args):
            if static and i in static:
                key += (type(x), exact(x))
                continue
            if type(x) not in _ARRAYS:
                if type(x) not in _NUMBERS:
                    return self._sign_trees(args, kwargs)
                x = self._as_array(x)
            leaves.append(x)
            key.append(x.aval)
        for name in sorted(kwargs) if len(kwargs) > 1 else kwargs:
            x = kwargs[name]
            if name in self._static_keywords:
                key += (name, type(x), exact(x))
                continue
            if type(x) not in _ARRAYS:
                if type(x) not in _NUMBERS:
                    return self._sign_trees(args, kwargs)
                x = self._as_array(x)
            leaves.append(x)
            key += (name, x.aval)
        return leaves, tuple(key)

    def _sign_trees(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Sequence[Any], Any]:
        static_values: list[Any] = []
        if self._static_positions:
            static = from_front(self._static_positions, len(args))
            static_values += [part for i in sorted(static) for part in (None, type(args[i]), exact(args[i]))]
            args = tuple([None if i in static else x for i, x in enumerate(args)])
        if self._static_keywords:
            names = sorted(self._static_keywords & kwargs.keys())
            static_values += [
                part for name in names for part in (name, type(kwargs[name]), exact(kwargs[name]))
            ]
            kwargs = {name: x for name, x in kwargs.items() if name not in self._static_keywords}
        leaves, tree = tree_flatten((args, kwargs))
        try:
            return leaves, (config.trace_key, tree, *static_values, *[x.aval for x in leaves])
        except AttributeError:  # a leaf that is not an array yet
            leaves = [self._as_array(x) for x in leaves]
        return leaves, (config.trace_key, tree, *static_values, *[x.aval for x in leaves])


def _raise_explained(runner: Runner, error: Exception, buffers: list[Any]) -> NoReturn:
    raise runner.executable.explain(error, buffers) from None


def _aval_of_numpy(x: np.ndarray) -> ShapedArray | None:
    """The type of a small argument if a call has nothing to do but to copy it; else None."""
    dtype = x.dtype
    plain = dtype.isbuiltin == 1 and dtype.isnative and dtypes.canonicalize_dtype(dtype) is dtype
    return ShapedArray(x.shape, dtype) if plain and 0 < x.nbytes <= SMALL else None


def _order_of_leaves(args: tuple) -> list[int]:
    """In which order the leaves of dicts, lists and tuples, numbered as they are met, are those of the tree."""
    numbers = itertools.count()

    def numbered(x: Any) -> Any:
        if type(x) is dict:
            return {key: numbered(value) for key, value in x.items()}
        if type(x) in (list, tuple):
            return type(x)([numbered(value) for value in x])
        return None if x is None else next(numbers)

    return tree_flatten((numbered(args), {}))[0]


def _new_memory(aval: ShapedArray) -> tuple[DeviceArray, Any, int, int] | None:
    """An array in memory that NumPy arguments of type `aval` can be copied to, its buffer, and where that memory is;
    None where XLA has made a copy of it."""
    host = aligned_empty(aval.shape, aval.dtype)
    buffer = execute.device_put(host, client.home_device(), copy=False, aval=aval)
    address = host.ctypes.data
    if jaxlib_api.address(buffer) != address:
        return None
    return DeviceArray(aval, None, buffer), buffer, address, host.nbytes


Dispatch: Any = PythonDispatch
if native is not None:
    native.set_up_loans(_aval_of_numpy, _new_memory)
    native.set_up_structures(_order_of_leaves)
    native.set_exact(exact_in_python, np.dtype)
    native.set_up(
        *(current, config, eager, registry_flatten, array_of_leaf, to_array, _raise_explained),
        *(DeviceArray, PlacedArray, np.ndarray),
    )
    Dispatch = native.Dispatch
