"""Called by mkdocs: adds the reference, pages about errors and flags, notebooks, and pictures to the site.

A page of docs/ says where something generated goes with a comment, `<!-- generated: flags -->`. The Chinese site has
the same, with error pages in Chinese, and leads to the English reference.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from mkdocs.structure.files import File, Files  # noqa: E402

from purax.commands import error_pages  # noqa: E402
from tools.documentation import gallery, notebooks, reference, tables  # noqa: E402

DOCUMENTS = ROOT / "docs"


def on_files(files: Files, config: Any) -> Files:
    """Adds what is made while the site is built."""

    def add(path: str, content: str | bytes) -> None:
        files.append(File.generated(config, path, content=content))

    language = config.theme["language"]
    for name in error_pages.names():
        text = error_pages.text(name, language)  # whose links begin at docs/errors
        add(f"errors/{name}.md", text if language == "en" else text.replace("](../", "](../../"))
    for file in list(files):
        if file.src_uri.startswith("tutorials/") and file.src_uri.endswith(".md") and "index" not in file.src_uri:
            add(file.src_uri.removesuffix(".md") + ".ipynb", notebooks.notebook(file.content_string))
    for name, picture in gallery.pictures().items():
        add(f"pictures/{name}.png", picture)
    if language == "zh":
        for asset in (DOCUMENTS / "assets").iterdir():
            add(f"assets/{asset.name}", asset.read_bytes())
    else:
        for path, text in reference.pages():
            add(f"reference/{path}", text)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fills in the places for what is generated, and leads links to where the site has their targets."""
    language = config.theme["language"]
    made = {
        "flags": tables.flag_table,
        "errors": lambda: tables.error_list(language),
        "modules": reference.module_table,
        "architecture": lambda: (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").replace("](docs/", "]("),
        "gallery": lambda: gallery.section(language),
    }
    markdown = re.sub(r"<!-- generated: (\w+) -->", lambda match: made[match[1]](), markdown)
    source = page.file.src_uri
    if source.startswith("tutorials/") and "index" not in source:
        name = Path(source).stem
        text = "Open as a notebook" if language == "en" else "下载为 notebook"
        first, _, rest = markdown.partition("\n")
        markdown = f"{first}\n\n[:material-notebook-outline: {text}]({name}.ipynb){{ .md-button download }}\n{rest}"
    if language == "zh":
        markdown = re.sub(r"\]\(((?:\.\./)+)([\w./-]+?)\.md(#[^)]*)?\)", _to_english(source), markdown)
    return _repository_links(markdown, source, config)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Takes the script that lets search work in a folder from this site, not from another server."""
    up = "../" * page.file.url.count("/")
    return re.sub(r'"https://unpkg\.com/iframe-worker/shim"', f'"{up}assets/file_worker.js"', output)


def _to_english(source: str) -> Any:
    """Replaces a link from docs/zh to a page of docs/ by the address that this page has beside the Chinese site."""
    depth = source.count("/") + 1

    def replace(match: re.Match[str]) -> str:
        if match[1].count("../") < depth:
            return match[0]
        return f"]({'../' * depth}{match[2]}.html{match[3] or ''})"

    return replace


def _repository_links(markdown: str, source: str, config: Any) -> str:
    """Links to files of the repository that are no pages lead to the repository."""
    folder = Path(config["docs_dir"], source).parent

    def replace(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(folder / match[1]))
        if target.is_relative_to(DOCUMENTS) or not target.is_relative_to(ROOT) or not target.exists():
            return match[0]
        return f"]({config['extra']['repository']}/blob/main/{target.relative_to(ROOT)}{match[2] or ''})"

    return re.sub(r"\]\(((?:\.\./)+[\w./-]+)(#[^)]*)?\)", replace, markdown)
