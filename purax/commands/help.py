"""`purax help`: the page about a class of errors."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence

from purax.commands import error_pages

USAGE = """usage: purax help [ERROR] [--language en|zh]

Prints the page about a class of errors: what it means, the mistake, and the mend. Without a name, lists the classes.
The language is that of the environment (LANG) unless it is given."""


def help(words: Sequence[str] = ()) -> int:
    """The command `purax help`; returns the exit status.

    Args:
        words: what follows `help` on the command line.
    """
    given = list(words)
    language = "zh" if os.environ.get("LANGUAGE", os.environ.get("LANG", "")).startswith("zh") else "en"
    if "--language" in given:
        at = given.index("--language")
        language = given[at + 1] if at + 1 < len(given) else ""
        del given[at : at + 2]
    if language not in ("en", "zh") or len(given) > 1:
        print(USAGE, file=sys.stderr)
        return 2
    if given in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if not given:
        print("\n".join(error_pages.names()))
        return 0
    name = given[0].rpartition(".")[2]
    known = list(error_pages.names())
    if name not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        print(f"purax help: there is no page about {name!r}{hint} `purax help` lists all", file=sys.stderr)
        return 2
    print(error_pages.text(name, language), end="")
    return 0
