"""Tables of the site that are made from the package: flags, and classes of errors."""

from __future__ import annotations

import re

from purax.commands import error_pages
from purax.config import FLAGS
from tools.documentation.reference import prose


def flag_table() -> str:
    """Every flag with its default and its meaning."""
    rows = []
    for flag in sorted(FLAGS, key=lambda flag: flag.name):
        accepts = f" One of {', '.join(f'`{c}`' for c in flag.choices)}." if flag.choices else ""
        text = prose(flag.help).replace("|", "\\|")
        rows.append(f"| `{flag.name}` | `{flag.default!r}` | {text}{accepts} |")
    return "| flag | default | |\n|---|---|---|\n" + "\n".join(rows)


def error_list(language: str) -> str:
    """Links to the pages of all classes of errors, with their first sentences."""
    rows = []
    for name in error_pages.names():
        paragraphs = error_pages.text(name, language).strip().split("\n\n")
        first = re.split(r"(?<=。)|(?<=\.)\s+", " ".join(paragraphs[1].split()))[0]
        rows.append(f"| [`{name}`]({name}.md) | {first} |")
    return "| | |\n|---|---|\n" + "\n".join(rows)
