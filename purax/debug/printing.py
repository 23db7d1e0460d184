"""`print`, `log` and `callback`: show values when they are computed, whatever the function is transformed by."""

from __future__ import annotations

import builtins
import functools
import logging
import string
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from purax.callbacks.debug import show
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown

logger = logging.getLogger("purax.debug")
_formatter = string.Formatter()


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with values of a program, when they are computed. Its result is dropped.

    Args:
        callback: the function. It is called with NumPy arrays (read-only) in place of the arrays among the arguments;
            numbers become arrays too, and everything else is passed as it is. Without it, the options are kept:
            `debug.callback(ordered=True)` returns a function that takes the rest.
        *args: its arguments, trees of arrays.
        ordered: whether it is called after the ordered callbacks before it, in this program and in earlier ones.
        partitioned: on several devices, whether it is called for the part on each. It makes no difference on one and in
            a `shard_map`, where it always is, and raises in other programs over a mesh.
        **kwargs: its keyword arguments.

    Under `vmap` it is called for one example after the other; under differentiation it sees the values, and is called
    in the forward pass. It may be called more or less often than the program says where `vmap` runs both branches of a
    `cond`, or where `checkpoint` computes a loop again.

    >>> import purax as px
    >>> seen = []
    >>> px.grad(lambda x: (px.debug.callback(lambda v: seen.append(float(v)), x), x**2)[1])(3.0), seen
    (Array(6., dtype=float32, weak_type=True), [3.0])
    """
    if callback is None:
        return functools.partial(globals()["callback"], ordered=ordered, partitioned=partitioned, **kwargs)
    show(callback, args, kwargs, ordered, "debug.callback", partitioned)
    return None


def print(  # noqa: A001
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Prints values of a program when they are computed.

    Args:
        fmt: a format string with places for the arguments, as for `str.format`: `"x = {x:.2f}"`. Not an f-string: that
            would show the tracer, not the value.
        *args: what to show, by position. Arrays are shown as NumPy shows them.
        ordered: whether it is printed after what was printed in order before.
        partitioned: on several devices, whether the part on each is printed; see `callback`.
        skip_format_check: whether places and arguments that do not fit are found only when it is printed.
        **kwargs: what to show, by name.

    >>> import purax as px, purax.numpy as jnp
    >>> @px.jit
    ... def f(x):
    ...     px.debug.print("x = {x}, of size {n}", x=x, n=x.size)
    ...     return x * 2
    >>> y = f(jnp.arange(3.0)); px.effects_barrier()
    x = [0. 1. 2.], of size 3
    """
    if fmt is None:
        options = dict(ordered=ordered, partitioned=partitioned, skip_format_check=skip_format_check)
        return functools.partial(globals()["print"], **options, **kwargs)
    if not isinstance(fmt, str):
        raise located(
            TypeError,
            f"debug.print needs a format string first, got {shown(fmt)} of type {type(fmt).__name__}; write "
            'debug.print("x = {}", x)',
        )
    if not skip_format_check:
        check_format(fmt, args, kwargs, "debug.print")
    show(Printer(fmt, _use_logging), args, kwargs, ordered, "debug.print", partitioned)
    return None


def log(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> None:
    """Logs values of a program when they are computed, at level INFO of the logger "purax.debug"; see `print`.

    >>> import purax as px
    >>> px.debug.log("the loss is {}", 0.5)
    """
    if fmt is None:  # all arguments, one after the other
        fmt = " ".join(["{}"] * len(args) + [f"{name}={{{name}}}" for name in kwargs])
    if not skip_format_check:
        check_format(fmt, args, kwargs, "debug.log")
    show(Printer(fmt, True), args, kwargs, ordered, "debug.log", partitioned)


class Printer:
    """Prints its arguments; equal ones are the same callback, so programs that print the same are shared."""

    __name__ = "print"

    def __init__(self, fmt: str, to_log: bool):
        self.fmt = fmt
        self.to_log = to_log
        self.options = np.get_printoptions()  # they belong to the thread, and XLA calls from others
        self.key = ("print", fmt, to_log, repr(self.options))

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with np.printoptions(**self.options):
            text = _formatter.format(self.fmt, *args, **kwargs)
        if self.to_log:
            logger.info("%s", text)
        else:
            builtins.print(f"{text}\n", end="")  # at once: devices print from several threads


def check_format(fmt: str, args: tuple, kwargs: dict[str, Any], what: str) -> None:
    """Raises unless the places of a format string are those of the arguments."""
    try:
        used = list(_places(fmt, _Numbering()))
    except ValueError as error:
        raise located(ValueError, f"{what}: the format string {shown(fmt)} is not valid: {error}") from None
    for place in used:
        if isinstance(place, int) and place >= len(args):
            raise located(
                IndexError,
                f"{what}: {shown(fmt)} has a place for argument {place}, but {len(args)} were given by position",
            )
        if isinstance(place, str) and place not in kwargs:
            raise located(
                KeyError,
                f"{what}: {shown(fmt)} has a place for {shown(place)}, which was not given; pass {place}=...",
            )
    unused = [x for i, x in enumerate(args) if i not in used]
    if unused:
        rest = ", ".join("a traced value" if isinstance(x, Tracer) else shown(x) for x in unused)
        raise located(
            ValueError,
            f"{what}: the format string {shown(fmt)} has no place for the argument {rest}; write {{}} there",
        )
    names = [name for name in kwargs if name not in used]
    if names:
        raise located(
            ValueError,
            f"{what}: the format string {shown(fmt)} has no place for {', '.join(names)}; write {{{names[0]}}}",
        )


class _Numbering:
    """Counts places without a number."""

    count = 0


def _places(fmt: str, numbering: _Numbering) -> Iterator[int | str]:
    """The arguments that a format string refers to, also in the specifications of others."""
    for _, field, specification, _ in string.Formatter().parse(fmt):
        if field is None:
            continue
        head = field.replace("[", ".").partition(".")[0]
        if head == "":
            yield numbering.count
            numbering.count += 1
        else:
            yield int(head) if head.isdigit() else head
        if specification:
            yield from _places(specification, numbering)
