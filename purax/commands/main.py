"""The command `purax`: finds the subcommand and hands it the rest of the command line."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence

from purax.commands.check import check
from purax.commands.devices import devices
from purax.commands.doctor import doctor
from purax.commands.explain import explain_command
from purax.commands.help import help
from purax.commands.profile import profile
from purax.commands.run import run
from purax.compat.version import JAX_VERSION, PURAX_VERSION
from purax.distributed.launcher import launch

COMMANDS: dict[str, tuple[Callable[[Sequence[str]], int], str]] = {
    "run": (run, "run a JAX program on purax: a script, a module (-m) or code (-c)"),
    "check": (check, "side effects, shapes and recompilations of a script, without running what is heavy"),
    "explain": (explain_command, "show what a function computes, and what each line of it costs"),
    "profile": (profile, "run a script, and write where time and memory go"),
    "launch": (launch, "start a group of processes on this machine"),
    "devices": (devices, "print what there is to compute on"),
    "doctor": (doctor, "check this installation: what is slow or missing, and how to mend it"),
    "help": (help, "print the page about a class of errors"),
}

USAGE = "\n".join(
    [
        "usage: purax COMMAND [ARGUMENT ...]",
        "       purax --version",
        "",
        *(f"  {name:10} {summary}" for name, (_, summary) in COMMANDS.items()),
        "",
        "`purax COMMAND --help` tells more of each.",
    ]
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script `purax`; returns the exit status.

    Args:
        arguments: the words after `purax`; those of the command line when left out.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words in (["--version"], ["-V"]):
        print(f"purax {PURAX_VERSION}, the interface of jax {JAX_VERSION}")
        return 0
    if words in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    if not words:
        print(f"purax: nothing to do\n{USAGE}", file=sys.stderr)
        return 2
    if words[0] not in COMMANDS:
        close = difflib.get_close_matches(words[0], COMMANDS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        print(f"purax: unknown command {words[0]!r}{hint}\n{USAGE}", file=sys.stderr)
        return 2
    command, _ = COMMANDS[words[0]]
    return command(words[1:])
