"""Finds links of a built site that lead nowhere: pages, pictures, and places within pages.

    python -m tools.documentation.links site
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote

_LINK = re.compile(r"""<(?:a|img|link|script|source|iframe)\b[^>]*?\b(?:href|src)=["']?([^"'\s>]*)""")
_PLACE = re.compile(r"""\b(?:id|name)=["']?([^"'\s>]+)""")


def broken_links(site: Path) -> list[str]:
    """What is wrong, a line for each page and link."""
    found = []
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":  # its links begin at wherever the site is served
            continue
        for link in sorted(set(_LINK.findall(_text(page)))):
            problem = _problem(site, page, link)
            if problem:
                found.append(f"{page.relative_to(site)}: {link}: {problem}")
    return found


def _problem(site: Path, page: Path, link: str) -> str | None:
    if re.match(r"[a-z]+:|//", link):  # elsewhere
        return None
    path, _, place = unquote(link.partition("?")[0]).partition("#")
    target = page if not path else (site / path.lstrip("/") if path.startswith("/") else page.parent / path)
    target = target.resolve()
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return "there is no such file"
    if place and target.suffix == ".html" and place != "__skip" and place not in _places(target):
        return "the page has no such place"
    return None


@cache
def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@cache
def _places(page: Path) -> frozenset[str]:
    return frozenset(_PLACE.findall(_text(page)))


def main() -> int:
    found = broken_links(Path(sys.argv[1]))
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
