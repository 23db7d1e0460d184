"""Scripts that a command runs and looks at, as `python` would run them; if they import jax, that means purax."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Sequence

from purax.commands.run import run_script
from purax.compat.finder import install

Command = Callable[[Sequence[str]], int]
_IMPORTS_JAX = re.compile(r"^\s*(?:import|from)\s+jax\b", re.MULTILINE)


class UsageError(ValueError):
    """A command line that says nothing to the command."""


def with_usage(usage: str) -> Callable[[Command], Command]:
    """A command that prints `usage` for `--help`, and beside a `UsageError`, after which its exit status is 2."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def checked(words: Sequence[str]) -> int:
            if list(words[:1]) in (["--help"], ["-h"]):
                print(usage)
                return 0
            try:
                return command(words)
            except UsageError as error:
                print(f"purax: {error}\n{usage}", file=sys.stderr)
                return 2

        return checked

    return decorate


def existing(path: str) -> str:
    """The path of a file that is there."""
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path!r}")
    return path


def options_of(words: Sequence[str], flags: Sequence[str], valued: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options at the beginning of a command line, and the words after them.

    Args:
        words: the command line.
        flags: options without a value.
        valued: options with one.

    >>> options_of(["--grad", "-o", "a.html", "x.py", "--grad"], ["--grad"], ["-o"])
    ({'--grad': '', '-o': 'a.html'}, ['x.py', '--grad'])
    """
    found: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        name, separator, value = rest.pop(0).partition("=")
        if name in flags and not separator:
            found[name] = ""
        elif name in valued and (separator or rest):
            found[name] = value if separator else rest.pop(0)
        else:
            problem = "needs a value" if name in valued else "is no option"
            raise UsageError(f"{name} {problem}")
    return found, rest


def prepare(path: str) -> None:
    """Makes `import jax` mean purax if a script imports it."""
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            if _IMPORTS_JAX.search(file.read()):
                install()


def run(path: str, arguments: Sequence[str]) -> None:
    """Runs a script as the program.

    Args:
        path: of the script.
        arguments: its command line.
    """
    prepare(path)
    run_script(path, arguments)
