"""`purax explain`: shows what a function of a script computes, and what that costs."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from purax import numpy as jnp
from purax.api.autodiff import value_and_grad
from purax.api.stages import struct_of
from purax.commands import scripts
from purax.core.trace import Tracer
from purax.explorer import Explanation, explain
from purax.explorer.stablehlo import model_of_module
from purax.export import deserialize
from purax.tree_util import tree_map

USAGE = """usage: purax explain [OPTION ...] SCRIPT.py:FUNCTION [ARGUMENT ...]
       purax explain [OPTION ...] EXPORTED_FILE | MODULE.mlir

Runs the script until it first calls the function, and explains that call: a page with the program as a graph, the
user's source, operations, bytes and memory by line, the compiled kernels, side effects. The rest of the script does not
run.
An exported function (what `serialize` gave) or a module of StableHLO opens as it is.

  --grad        explain the derivative: value_and_grad of the function
  --measure     run it, for the time of each line
  --numbers     run it equation by equation, for the ranges of values
  --no-compile  do not compile it
  --text        print a summary; do not open the page
  -o FILE       write the page there; do not open it"""


class _Found(BaseException):
    """Ends the script when the function is called; no handler of the user's sees it."""

    def __init__(self, frame: FrameType):
        self.arguments = _arguments_of(frame)
        self.module = frame.f_globals


@scripts.with_usage(USAGE)
def explain_command(words: Sequence[str]) -> int:
    """The command `purax explain`; returns the exit status.

    Args:
        words: what follows `explain` on the command line.
    """
    options, rest = scripts.options_of(
        words, ("--grad", "--measure", "--numbers", "--no-compile", "--text"), ("-o",)
    )
    if not rest:
        raise scripts.UsageError("nothing to explain")
    path, separator, name = rest[0].rpartition(":")
    if not separator or not name.replace(".", "").isidentifier():
        path, name = rest[0], ""
    scripts.existing(path)
    if not name and path.endswith(".py"):
        raise scripts.UsageError(f"which function? write {path}:NAME")
    explanation = _of_script(path, name, rest[1:], options) if name else _of_file(path)
    if explanation is None:
        return 1
    if "-o" in options:
        explanation.save(options["-o"])
    if "--text" in options or "-o" in options:
        print(explanation)
    else:
        print(f"{explanation}\nThe page: {explanation.show()}")
    return 0


def _of_file(path: str) -> Explanation | None:
    with open(path, "rb") as file:
        data = file.read()
    try:
        if path.endswith(".mlir"):
            return Explanation(model_of_module(data.decode(), os.path.basename(path)))
        return explain(deserialize(data))()
    except ValueError as error:
        print(f"purax: {path} is neither an exported function nor StableHLO: {error}", file=sys.stderr)
        return None


def _of_script(path: str, name: str, arguments: Sequence[str], options: dict[str, str]) -> Explanation | None:
    try:
        scripts.prepare(path)
        with _watching(path, name):
            scripts.run(path, arguments)
    except _Found as found:
        function = found.module.get(name)
        args, kwargs = found.arguments
    else:
        print(f"purax: {path} ended without calling a function {name!r}", file=sys.stderr)
        return None
    if not callable(function):
        print(f"purax: {name!r} is not a function of the module itself, which could be called again", file=sys.stderr)
        return None
    are_traced = any(isinstance(x, Tracer) for x in _leaves((args, kwargs)))
    runs = "--measure" in options or "--numbers" in options
    if are_traced:
        # The call is one of those that tracing makes: the types are known, the values are not.
        args, kwargs = tree_map(_stand_in if not runs else _ones, (args, kwargs))
        if runs:
            print("purax: the script calls it under a transformation, without values; ones stand for them")
    if "--grad" in options:
        function = value_and_grad(function)
    explained: Callable[..., Explanation] = explain(
        function,
        measure="--measure" in options,
        numbers="--numbers" in options,
        compile="--no-compile" not in options,
    )
    return explained(*args, **kwargs)


class _watching:
    """Raises `_Found` when a function of a file is called."""

    def __init__(self, path: str, name: str):
        self._path, self._name = os.path.realpath(path), name

    def __enter__(self) -> None:
        self._before = sys.getprofile()
        sys.setprofile(self._called)

    def __exit__(self, *_: Any) -> None:
        sys.setprofile(self._before)

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == self._name:
            if os.path.realpath(frame.f_code.co_filename) == self._path:
                sys.setprofile(self._before)
                raise _Found(frame)


def _arguments_of(frame: FrameType) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a call that has just begun."""
    code = frame.f_code
    values = inspect.getargvalues(frame)
    plain = values.args[: code.co_argcount]
    rest = values.args[code.co_argcount :]
    args = [values.locals[name] for name in plain]
    args += values.locals.get(values.varargs, ()) if values.varargs else ()
    kwargs = {name: values.locals[name] for name in rest}
    kwargs.update(values.locals.get(values.keywords, {}) if values.keywords else {})
    return tuple(args), kwargs


def _leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(found.append, tree)
    return found


def _stand_in(x: Any) -> Any:
    return struct_of(x.aval) if isinstance(x, Tracer) else x


def _ones(x: Any) -> Any:
    return jnp.ones(x.shape, x.dtype) if isinstance(x, Tracer) else x
