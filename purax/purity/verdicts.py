"""What is remembered of functions that have no side effects, so that closures made anew are not looked into again."""

from __future__ import annotations

import types
from typing import Any

from purax.core.array import Array
from purax.purity.captures import Captures
from purax.purity.contents import is_value, read_class, read_function, reader_of


class Verdict:
    """That functions which are alike are clean, as long as the functions and variables that they name stay."""

    def __init__(self, kept: list[Any]):
        self._kept = kept
        self._spaces: list[tuple[dict[str, Any], str, Any]] = []
        self._functions: list[tuple[types.FunctionType, Any, Any]] = []

    @staticmethod
    def of(captures: Captures, kept: list[Any]) -> Verdict | None:
        """The verdict on what was walked over; None if it could change while all functions stay the same."""
        if captures.suspicious or not captures.is_complete:
            return None
        verdict = Verdict(kept)
        for node in captures.spaces.values():
            for name, value in zip(node.state[1], node.state[2], strict=True):
                fixed = is_value(value) or isinstance(
                    value, (Array, tuple, types.FunctionType, types.ModuleType)
                )
                if not fixed and reader_of(value) is not None:
                    return None
                verdict._spaces.append((node.value, name, None if isinstance(value, Array) else value))
        for node in captures.nodes.values():
            if node.reader is read_class:
                return None
            if node.reader is read_function and node.value.__closure__ is None:
                verdict._functions.append((node.value, node.value.__code__, node.value.__defaults__))
        return verdict

    def holds(self) -> bool:
        """Whether what the functions name is what it was."""
        return all(
            [
                space.get(name) is value or isinstance(space.get(name), Array)
                for space, name, value in self._spaces
            ]
        ) and all(
            [f.__code__ is code and f.__defaults__ is defaults for f, code, defaults in self._functions]
        )
