"""The pages about classes of errors, one for each and each language, which `purax help` and the documentation show.

A page is a Markdown file beside this one: what the class means, the mistake as a program, and the mend as a program.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> Iterator[str]:
    """The classes that have a page."""
    return (path.stem for path in sorted(FOLDER.glob("*.md")) if "." not in path.stem)


def text(name: str, language: str = "en") -> str:
    """The page about a class, in English or Chinese.

    >>> text("AxisError").splitlines()[0]
    '# AxisError'
    """
    suffix = {"en": "", "zh": ".zh"}[language]
    return (FOLDER / f"{name}{suffix}.md").read_text(encoding="utf-8")
