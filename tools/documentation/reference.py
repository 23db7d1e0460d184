"""Pages of the reference: one for every public object, and one for every module, from signatures and docstrings."""

from __future__ import annotations

import html
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from tools.documentation.public_names import public_modules, value_of

WIDTH = 88
# Where others document the function of the same name.
ELSEWHERE = (
    ("purax.numpy", "numpy", "NumPy", "https://numpy.org/doc/stable/reference/generated/{path}.html"),
    ("purax.scipy", "scipy", "SciPy", "https://docs.scipy.org/doc/scipy/reference/generated/{path}.html"),
)
JAX = "https://docs.jax.dev/en/latest/_autosummary/jax.{path}.html"
HAVE_NO_JAX_PAGE = ("purax.errors", "purax.pallas", "purax.experimental", "purax.config", "purax.ref")
_SECTIONS = {
    "Args": "Arguments", "Arguments": "Arguments", "Returns": "Returns", "Return": "Returns", "Yields": "Yields",
    "Raises": "Raises", "Attributes": "Attributes",
}  # fmt: skip


def pages() -> Iterator[tuple[str, str]]:
    """The path below `reference/` and the Markdown of every page but the first, `index.md`."""
    for module, names in public_modules().items():
        rows = []
        for name in names:
            value = value_of(module, name)
            path = f"{module}/{page_name(name, names)}.md"
            rows.append(f"| [`{name}`]({path}) | {_in_table(summary(value))} |")
            yield path, object_page(module, name, value)
        said = inspect.getdoc(importlib.import_module(module)) or ""
        text = [f"# {module}", prose(said.split(">>>")[0]), "| | |\n|---|---|\n" + "\n".join(rows)]
        yield f"{module}.md", "\n\n".join(text) + "\n"


def page_name(name: str, names: list[str]) -> str:
    """The name of a page's file: names that differ by case alone would be one file on some systems."""
    alike = sorted(other for other in names if other.lower() == name.lower())
    return name if alike[0] == name else f"{name}-{alike.index(name) + 1}"


def module_table() -> str:
    """The table of all modules, for the first page."""
    rows = []
    for module, names in public_modules().items():
        said = inspect.getdoc(importlib.import_module(module)) or ""
        rows.append(f"| [`{module}`]({module}.md) | {len(names)} | {_in_table(first_sentence(said))} |")
    return "| module | names | |\n|---|---|---|\n" + "\n".join(rows)


def object_page(module: str, name: str, value: Any) -> str:
    """The page of one function, class or value."""
    parts = [f"# {module}.{name}"]
    if inspect.isclass(value) or callable(value):
        parts.append(f"```python\n{signature(name, value)}\n```")
    else:
        parts.append(f"```python\n{name}: {type(value).__name__} = {_short(value)}\n```")
    parts.append(docstring(doc_of(value)) or "A value.")
    if inspect.isclass(value) and value.__module__.startswith("purax"):
        parts += class_members(value)
    links = [f"[`{module}`](../{module}.md)", *elsewhere(module, name)]
    parts.append("---\n\nModule " + ". See also ".join([links[0], ", ".join(links[1:])] if links[1:] else links) + ".")
    return "\n\n".join(parts) + "\n"


def elsewhere(module: str, name: str) -> list[str]:
    """Links to what NumPy, SciPy and JAX say about the same name."""
    links = []
    for own, package, shown, address in ELSEWHERE:
        if module == own or module.startswith(own + "."):
            path = package + module.removeprefix(own)
            if _has(path, name):
                links.append(f"[{shown}]({address.format(path=f'{path}.{name}')})")
    if not module.startswith(HAVE_NO_JAX_PAGE):
        path = f"{module}.{name}".removeprefix("purax.")
        links.append(f"[JAX]({JAX.format(path=path)})")
    return links


def _has(path: str, name: str) -> bool:
    try:
        return callable(getattr(importlib.import_module(path), name, None))
    except ImportError:
        return False


def class_members(kind: type) -> list[str]:
    """Sections about the documented methods and properties of a class."""
    parts = []
    for name, member in sorted(vars(kind).items()):
        if name.startswith("_") or not (said := doc_of(member)):
            continue
        if isinstance(member, property):
            heading = f"{name}"
        elif callable(member) or isinstance(member, (classmethod, staticmethod)):
            heading = signature(name, getattr(kind, name))
        else:
            continue
        text = re.sub(r"^## (\w+)$", r"**\1**", docstring(said), flags=re.MULTILINE)  # no sections of their own
        parts.append(f"## {name}\n\n```python\n{heading}\n```\n\n{text}")
    return parts


def signature(name: str, value: Any) -> str:
    """How a function is called: on one line if it fits, or else with a line for each parameter."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return f"{name}(...)"
    parts = []
    for text in _parameters(found):
        parts.append(text)
    returned = found.return_annotation
    result = "" if returned is found.empty or inspect.isclass(value) else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(parts)}){result}"
    return line if len(line) <= WIDTH else "{}(\n{}){}".format(name, "".join(f"    {p},\n" for p in parts), result)


def _parameters(found: inspect.Signature) -> Iterator[str]:
    kinds = [p.kind for p in found.parameters.values()]
    has_star = inspect.Parameter.VAR_POSITIONAL in kinds
    for position, parameter in enumerate(found.parameters.values()):
        if parameter.name.startswith("_"):
            continue
        before = kinds[position - 1] if position else None
        if before is parameter.POSITIONAL_ONLY and parameter.kind is not parameter.POSITIONAL_ONLY:
            yield "/"
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "*"
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        kind = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else _short(parameter.default)
        equals = (" = " if kind else "=") if default else ""
        yield f"{star}{parameter.name}{kind}{equals}{default}"
    if kinds and kinds[-1] is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(typing|collections\.abc|purax(\.\w+)*|numpy)\.(?=[A-Za-z])", "", text)


def _short(value: Any) -> str:
    """A value as one would write it, without addresses in memory."""
    if isinstance(value, type):
        return value.__name__
    if inspect.isfunction(value):
        return value.__name__
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))
    return text if len(text) <= 60 else text[:57] + "..."


# --- docstrings


def doc_of(value: Any) -> str:
    """What is written about a value itself, not about its type."""
    said = inspect.getdoc(value) or ""
    if not (inspect.isclass(value) or callable(value) or isinstance(value, (property, classmethod, staticmethod))):
        return "" if said == inspect.getdoc(type(value)) else said
    return said


def first_sentence(said: str) -> str:
    paragraph = " ".join(said.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[^.][.!?])\s+(?=[A-Z`])", paragraph)[0]


def summary(value: Any) -> str:
    return first_sentence(doc_of(value)) or _short(value)


def _in_table(text: str) -> str:
    return prose(text).replace("|", "\\|")


def prose(text: str) -> str:
    """Running text: what stands outside of `code` is no markup."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _escape(part) for part in parts)


def _escape(text: str) -> str:
    return re.sub(r"([\[\]*_{}])", r"\\\1", html.escape(text, quote=False))


def docstring(said: str) -> str:
    """The Markdown of a docstring: paragraphs, sections with tables of arguments, examples."""
    blocks = re.split(r"\n\s*\n", said.strip("\n"))
    made = []
    for block in blocks:
        lines = block.splitlines()
        head = re.fullmatch(r"(\w+):", lines[0]) if lines else None
        if head and head[1] in _SECTIONS and len(lines) > 1:
            made.append(f"## {_SECTIONS[head[1]]}\n\n{_section(lines[1:])}")
        elif lines and lines[0].lstrip().startswith(">>>"):
            made.append("## Example\n\n```pycon\n" + inspect.cleandoc(block) + "\n```")
        elif lines and all(line.startswith("    ") for line in lines):
            made.append("```\n" + inspect.cleandoc(block) + "\n```")
        else:
            made.append(_mixed(lines))
    text = "\n\n".join(made)
    return re.sub(r"\n```\n\n## Example\n\n```pycon\n", "\n\n", text)


def _mixed(lines: list[str]) -> str:
    """A paragraph, in which a list or an example may begin in the middle."""
    text: list[str] = []
    for number, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            example = inspect.cleandoc("\n".join(lines[number:]))
            return "\n".join(text) + f"\n\n```pycon\n{example}\n```"
        is_item = re.match(r"\s*([-*]|\d+\.) ", line)
        if is_item and text and not re.match(r"\s*([-*]|\d+\.) ", lines[number - 1]):
            text.append("")
        text.append(line[: is_item.end()] + prose(line[is_item.end() :]) if is_item else prose(line))
    return "\n".join(text)


def _section(lines: list[str]) -> str:
    """Arguments as a table, or the text about a result."""
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    rows: list[list[str]] = []
    for line in (line[indent:] for line in lines):
        begins = re.match(r"(\*{0,2}[A-Za-z_][\w, *.]*?):\s+(.*)", line) if not line.startswith(" ") else None
        if begins:
            rows.append([begins[1], begins[2]])
        elif rows:
            rows[-1][1] += " " + line.strip()
        else:
            return prose(" ".join(line.strip() for line in lines))
    shown = "\n".join(f"| `{name}` | {_in_table(text)} |" for name, text in rows)
    return f"| | |\n|---|---|\n{shown}"
