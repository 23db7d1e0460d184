"""What is found about a function that is not pure, and how it is told: as a warning, an error or a report."""

from __future__ import annotations

import linecache
import os
import warnings
from dataclasses import dataclass
from typing import Any

from purax import errors
from purax.purity.impure_names import Impurity

GLOBAL = Impurity(
    "global",
    "the assignment happens once, while the function is traced, and not when the compiled program runs",
    "return the new value, and assign it where the function is called",
)
NONLOCAL = Impurity(
    "nonlocal",
    "the assignment happens once, while the function is traced, and not when the compiled program runs",
    "return the new value, and assign it where the function is called",
)
MUTATION = Impurity(
    "mutation",
    "it is changed once, while the function is traced, and not when the compiled program runs",
    "build a new value and return it; to report values while the program runs, use purax.debug.callback or "
    "purax.experimental.io_callback",
)
ARGUMENT = Impurity(
    "argument",
    "the function changes a copy that tracing made; the caller's own stays as it is",
    "make a copy first (`new = dict(old)`, `list(old)`, `dataclasses.replace(old, …)`), change that and return it",
)
LEAK = Impurity(
    "leak",
    "a traced value that outlives its trace cannot be used: any later use of it is an error",
    "return the value from the function",
)


@dataclass(frozen=True)
class Finding:
    """One side effect.

    Attributes:
        kind: "global", "nonlocal", "mutation", "argument", "leak", "iterator", "print", "input", "file", "clock",
            "random", "environment", "process" or "exec".
        place: file and line, `train.py:12 (loss)`.
        name: of the variable, object or function involved.
        what: is done, in words.
        consequence: what would happen.
        advice: what to write instead.
        file: of the place.
        line: of the place.
    """

    kind: str
    place: str
    name: str
    what: str
    consequence: str
    advice: str
    file: str
    line: int

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        source = f": {text}" if text else ""
        return f"{self.what}; {self.consequence}.\n  at {self.place}{source}\n  Instead: {self.advice}."


def finding(impurity: Impurity, code: Any, line: int, name: str, what: str) -> Finding:
    """A finding in the function that `code` belongs to."""
    place = f"{code.co_filename}:{line} ({code.co_name})"
    return Finding(
        impurity.kind, place, name, what, impurity.consequence, impurity.advice, code.co_filename, line
    )


class Report:
    """What `check_pure` found.

    Attributes:
        function: the name of the function.
        findings: the side effects, in the order in which they happened.
    """

    def __init__(self, function: str, findings: list[Finding]):
        self.function = function
        self.findings = findings

    @property
    def is_pure(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.is_pure

    def __repr__(self) -> str:
        if self.is_pure:
            return f"`{self.function}` is pure, as far as it was traced"
        count = len(self.findings)
        lines = [f"`{self.function}` has {count} side effect{'s' if count > 1 else ''}:"]
        for number, found in enumerate(self.findings, 1):
            lines.append(f"{number}. [{found.kind}] {found}")
        return "\n".join(lines)


_told: set[Any] = set()


def warn(found: Finding) -> None:
    """Warns of a finding, once per place."""
    key = (found.kind, found.file, found.line, found.name)
    if key in _told:
        return
    message = errors.ImpureFunctionWarning(str(found))
    warnings.warn_explicit(message, None, found.file, found.line, module=_module_name(found.file))
    _told.add(key)


def forget() -> None:
    """Lets every place be told again."""
    _told.clear()


def error(found: Finding) -> errors.ImpureFunctionError:
    """The finding as an exception."""
    made = errors.ImpureFunctionError(str(found))
    made._located = True  # type: ignore[attr-defined]
    made.finding = found  # type: ignore[attr-defined]
    return made


def _module_name(file: str) -> str:
    return os.path.splitext(os.path.basename(file))[0]
