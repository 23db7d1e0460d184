"""The documentation site: what is made for it from the package, and the programs of its gallery and tutorials.

The pages' code runs in `test_readme`. The site itself is built, and its links followed, by `make docs`.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from tools.documentation import gallery, notebooks, reference, tables
from tools.documentation.links import broken_links
from tools.documentation.public_names import public_modules, value_of

ROOT = Path(__file__).parents[1]
TUTORIALS = [p for p in sorted(ROOT.glob("docs/**/tutorials/*.md")) if p.name != "index.md"]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(reference.pages())


def test_every_public_object_has_a_page(pages):
    modules = public_modules()
    for module, least in {"purax": 100, "purax.numpy": 400, "purax.lax": 350, "purax.scipy.special": 50}.items():
        assert len(modules[module]) >= least
    for name in "purax/jit purax.numpy/einsum purax.scipy.stats.norm/logpdf purax.errors/ShapeError".split():
        assert f"{name}.md" in pages
    for module, names in modules.items():
        assert {f"{module}/{reference.page_name(name, names)}.md" for name in names} <= set(pages)


def test_pages_do_not_differ_by_case_alone(pages):
    """Else they would be one file on some systems."""
    assert len({path.lower() for path in pages}) == len(pages)
    assert "purax.pallas/Squeezed.md" in pages and "purax.pallas/squeezed-2.md" in pages


def test_a_page_shows_signature_arguments_and_example(pages):
    page = pages["purax.numpy/einsum.md"]
    assert page.startswith("# purax.numpy.einsum\n")
    assert "einsum(\n    subscripts: Any,\n    /,\n    *operands: Any,\n" in page
    assert "| `subscripts` | the names of the axes" in page
    assert '```pycon\n>>> import purax.numpy as jnp\n>>> jnp.einsum("ij,j->i"' in page
    assert "numpy.org/doc/stable/reference/generated/numpy.einsum.html" in page


def test_signatures_say_what_python_says():
    """Read back, a written signature is the one that it was written from, but for private parameters."""
    checked = 0
    for module in ("purax", "purax.numpy", "purax.lax", "purax.random"):
        for name in public_modules()[module]:
            value = value_of(module, name)
            if not inspect.isfunction(value):
                continue
            written = reference.signature(name, value)
            names = [p.name for p in inspect.signature(value).parameters.values() if not p.name.startswith("_")]
            assert all(re.search(rf"(?<!\w){re.escape(each)}(?!\w)", written) for each in names), written
            assert max(map(len, written.splitlines())) < 160, written
            checked += 1
    assert checked > 600


def test_markup_in_docstrings_is_shown_as_text():
    assert reference.prose("a [b](c) and `x[0]` * y_z <t>") == r"a \[b\](c) and `x[0]` \* y\_z &lt;t&gt;"


def test_sections_of_docstrings():
    said = """Adds.

    Args:
        x: one | two,
            and more.
        *rest: others.

    Returns:
        The sum.

    >>> 1 + 1
    2
    """
    shown = reference.docstring(inspect.cleandoc(said))
    assert "| `x` | one \\| two, and more. |" in shown and "| `*rest` | others. |" in shown
    assert "## Returns\n\nThe sum." in shown and "```pycon\n>>> 1 + 1\n2\n```" in shown


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda file: str(file.relative_to(ROOT / "docs")))
def test_tutorials_are_notebooks(tutorial):
    """Each block of Python is a cell that Python can read, in the order of the page."""
    text = tutorial.read_text()
    cells = json.loads(notebooks.notebook(text))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == text.count("```python\n") > 0
    for cell in code:
        compile("".join(cell["source"]), tutorial.name, "exec")
    assert cells[0]["source"][0].startswith("# ")


def test_chinese_tutorials_have_the_code_of_the_english_ones():
    blocks = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for tutorial in ROOT.glob("docs/zh/tutorials/*.md"):
        english = ROOT / "docs" / "tutorials" / tutorial.name
        assert blocks.findall(tutorial.read_text()) == blocks.findall(english.read_text()), tutorial.name


@pytest.mark.sampled(8)
@pytest.mark.parametrize("program", gallery.programs(), ids=lambda path: path.stem)
def test_programs_of_the_gallery_make_pictures(program, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(program), str(picture)])
    runpy.run_path(str(program))
    pyplot.close("all")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_gallery_shows_every_program():
    section = gallery.section("en")
    assert all(f"pictures/{path.stem}.png" in section for path in gallery.programs())
    assert len(gallery.programs()) >= 12


def test_navigation_names_every_page():
    for config, folder in (("mkdocs.yml", "docs"), ("mkdocs.zh.yml", "docs/zh")):
        listed = set(re.findall(r"[\w/]+\.md", (ROOT / config).read_text().partition("\nnav:")[2]))
        there = {str(path.relative_to(ROOT / folder)) for path in (ROOT / folder).rglob("*.md")}
        if folder == "docs":
            there = {path for path in there if not path.startswith("zh" + os.sep)}
        assert listed == there


def test_broken_links_are_found(tmp_path):
    links = "<a href=b.html#gone>x</a> <img src=c.png>"
    (tmp_path / "a.html").write_text(f"<a href=\"b.html#here\">b</a> {links} <p id=top>")
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1> <a href="a.html#top">a</a> <a href="https://a.org/x">y</a>')
    assert broken_links(tmp_path) == [
        "a.html: b.html#gone: the page has no such place",
        "a.html: c.png: there is no such file",
    ]


def test_flags_are_documented():
    assert "| `debug_nans` | `False` |" in tables.flag_table()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_errors_are_listed_by_a_sentence(language):
    rows = tables.error_list(language).splitlines()[2:]
    assert len(rows) >= 30
    for row in rows:
        name, said = re.fullmatch(r"\| \[`(\w+)`\]\(\1\.md\) \| (.+) \|", row).groups()
        assert said.count("`") % 2 == 0 and said.endswith((".", "。")), (name, said)
