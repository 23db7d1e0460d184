"""Running a sampler: as a program that is compiled once for each shape, so that a key gives the same numbers wherever
it is used, eagerly or inside of `jit`.

A sampler is a function of arrays, the words of the key first, and of static parameters. One that only moves bits and
integers around has the same result on the host; small eager draws of it are made there, without compilation, until
there have been so many that compiling would have paid.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.api.jit import jit
from purax.config import config
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.trace import current
from purax.execution.eager import _Quiet, eager
from purax.interpreters.staging import StagingTrace
from purax.xla.array import DeviceArray

_HOST_SIZE = 1024  # the largest draw that is made on the host
_HOST_NANOSECONDS = (
    30_000_000  # how long draws of one kind may take there in all, which is half of a compilation
)
_MAX_PROGRAMS = 4096

_quiet = _Quiet()


def sampler(host: Callable[..., np.ndarray] | None = None) -> Callable[[Callable], Callable]:
    """Makes a program of `function(words, *operands, *, implementation, shape, **static)`; `static` is hashable.

    Args:
        host: The same function on NumPy arrays, with the same bits as its result.

    Returns:
        A decorator. Operands may be NumPy scalars. Integers are a part of a larger program that is being traced (it is
        faster to divide by a known number), but not of one that runs at once, so that another number needs no other
        program.
    """

    def decorate(function: Callable) -> Callable:
        programs: dict[tuple, Callable] = {}
        host_calls: dict[tuple, int] = {}  # that are left

        @functools.wraps(function)
        def call(*operands, **static):
            trace = current.trace
            if host is not None and trace is eager:
                kind = tuple(static.values())
                left = host_calls.get(kind)
                if left is None:
                    left = _host_calls(**static)
                if left:
                    values = host_values(operands)
                    if values is not None:
                        if len(host_calls) >= _MAX_PROGRAMS:
                            host_calls.clear()
                        host_calls[kind] = left - 1
                        result = np.asarray(_quiet.run(host, *values, **static))
                        return DeviceArray(ShapedArray(result.shape, result.dtype), result)
            constants: tuple = ()
            if type(trace) is StagingTrace:
                constants = tuple(
                    (i, x) for i, x in enumerate(operands) if _is_number(x) and x.dtype.kind in "iu"
                )
                positions = {i for i, _ in constants}
                # Numbers of 64 bits become arrays here: as arguments of a function they would be cut to 32.
                operands = tuple(
                    _shared_array(x) if _is_number(x) and x.dtype.itemsize > 4 else x
                    for i, x in enumerate(operands)
                    if i not in positions
                )
            else:
                operands = tuple([_shared_array(x) if _is_number(x) else x for x in operands])
            key = (config.trace_key, *static.values(), *((i, x.dtype, x.tobytes()) for i, x in constants))
            program = programs.get(key)
            if program is None:
                if len(programs) >= _MAX_PROGRAMS:
                    programs.clear()
                program = programs[key] = jit(_bound(function, static, constants))
            return program(*operands)

        return call

    return decorate


def _host_calls(*, implementation: Any, shape: tuple[int, ...], **static: Any) -> int:
    """How often a sampler with these parameters runs on the host."""
    size = math.prod(shape)
    if size > _HOST_SIZE or not implementation.runs_on_host:
        return 0
    return _HOST_NANOSECONDS // (30_000 + 60 * size)


def _bound(function: Callable, static: dict[str, Any], constants: tuple) -> Callable:
    def sample(*operands):
        everything = list(operands)
        for position, number in constants:
            everything.insert(position, number)
        return function(*everything, **static)

    sample.__name__ = sample.__qualname__ = function.__name__
    return sample


def host_values(operands: tuple) -> list[np.ndarray] | None:
    """The operands as NumPy arrays, if all are on the host already."""
    values = []
    for x in operands:
        if type(x) is DeviceArray:
            x = x._host if x._host is not None else x.peek()
            if x is None:
                return None
        elif isinstance(x, Array):
            return None
        values.append(x)
    return values


def _is_number(x: Any) -> bool:
    return type(x) is np.ndarray and x.ndim == 0


_shared: dict[tuple, DeviceArray] = {}


def _shared_array(x: np.ndarray) -> DeviceArray:
    """A number as an array, one for all its uses: it moves to a device once."""
    key = (x.dtype, x.tobytes())
    array = _shared.get(key)
    if array is None:
        if len(_shared) >= _MAX_PROGRAMS:
            _shared.clear()
        array = _shared[key] = DeviceArray(ShapedArray((), x.dtype), x)
    return array
