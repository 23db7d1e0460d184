"""The page of the explorer in Chromium: it opens, zooms, unfolds, links lines with operations, and finds them."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

import purax as px
import purax.numpy as jnp

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "tools" / "explorer"
SECONDS_TO_OPEN = 3


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("PURAX_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="`make browser` installs playwright")
    path = chromium()
    if path is None:
        pytest.skip("there is no Chromium: apt install chromium, or set PURAX_CHROMIUM")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


def layer(w, x):
    with px.named_scope("dense"):
        return jnp.tanh(x @ w)


def network(ws, x):
    for w in ws:
        x = layer(w, x)
    x, _ = px.lax.scan(lambda c, s: (jnp.sin(c) * s, None), x, jnp.arange(4.0))
    return jnp.sum(jnp.sort(x) ** 2)


@pytest.fixture(scope="module")
def explanation():
    ws, x = [jnp.full((8, 8), 0.1)] * 12, jnp.ones((4, 8))
    return px.explain(px.value_and_grad(network), measure=True, numbers=True)(ws, x)


def opened(browser, explanation, folder, **options):
    """The page, which must do without network and without errors."""
    path = folder / "page.html"
    explanation.save(path)
    context = browser.new_context(offline=True, **options)
    page = context.new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: page.faults.append(request.url) if not request.url.startswith("file:") else None)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    return page


@pytest.fixture
def page(browser, explanation, tmp_path):
    page = opened(browser, explanation, tmp_path)
    yield page
    assert page.faults == []
    page.context.close()


def scale(page) -> float:
    return page.evaluate("document.querySelector('svg.graph').__zoom.k")


def test_it_opens_with_source_graph_and_figures(page):
    assert page.inner_text("h1") == "network"
    assert "jnp.tanh(x @ w)" in page.inner_text(".code")
    assert page.locator("g.node").count() >= 2
    assert "measured" in page.inner_text(".figures")


def test_it_zooms(page):
    before = scale(page)
    page.click(".toolbar button[title='zoom in']")
    page.wait_for_function("k => document.querySelector('svg.graph').__zoom.k > k", arg=before)
    box = page.locator("svg.graph").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    between = scale(page)
    page.mouse.wheel(0, 600)
    page.wait_for_function("k => document.querySelector('svg.graph').__zoom.k < k", arg=between)


def test_groups_unfold_and_fold(page):
    page.click(".toolbar button[title='fold all groups']")
    before = page.locator("g.node").count()
    page.locator("g.node.group:not(.open) .fold").first.click()
    page.wait_for_function("n => document.querySelectorAll('g.node').length > n", arg=before)
    page.locator("g.node.open > .fold").first.click()
    assert page.locator("g.node").count() == before


def test_a_line_selects_its_operations(page):
    page.locator(".line.used", has_text="jnp.tanh(x @ w)").click()
    assert page.locator(".line.selected", has_text="jnp.tanh(x @ w)").count() == 1
    assert page.locator("g.node.selected").count() == 1
    assert "on this line" in page.inner_text(".card") and ".py:" in page.inner_text(".card")
    first = page.locator("g.node.selected").get_attribute("data-path")
    page.locator(".card button", has_text="›").click()
    assert page.locator("g.node.selected").get_attribute("data-path") != first


def test_an_operation_selects_its_line(page):
    page.fill("input[type=search]", "sort")
    page.keyboard.press("Enter")
    assert page.text_content("g.node.selected > .label") == "sort"
    assert page.locator(".line.selected", has_text="jnp.sort").count() == 1
    assert "f32[4,8]" in page.inner_text(".card")


def test_an_operation_inside_a_loop_is_found(page):
    page.fill("input[type=search]", "sin f32[4,8]")
    assert "found" in page.inner_text(".results")
    page.keyboard.press("Enter")
    selected = page.locator("g.node.selected")
    assert selected.locator("> .label").text_content().startswith(("sin", "cos"))
    box, view = selected.bounding_box(), page.locator("svg.graph").bounding_box()
    page.wait_for_timeout(400)
    box = selected.bounding_box()
    assert view["x"] <= box["x"] and box["y"] + box["height"] <= view["y"] + view["height"]
    page.fill("input[type=search]", "no such operation")
    assert "nothing found" in page.inner_text(".results")


@pytest.mark.parametrize("tab, text", [
    ("Lines", "Costs by line"), ("Memory", "What lives at the peak"), ("Compiled", "Before and after"),
    ("Notes", "Side effects"),
])  # fmt: skip
def test_every_tab_shows_what_it_says(page, tab, text):
    page.click(f"nav button[data-tab={tab}]")
    assert text in page.inner_text(".content")
    assert page.locator(".content tr.link").count() > 0 or tab == "Notes"


def test_the_graph_is_coloured_by_what_is_chosen(page):
    for metric in ("seconds", "flops", "bytes", "peak"):
        page.click(f".metrics button[data-metric={metric}]")
        assert page.locator(".metrics [aria-pressed=true]").get_attribute("data-metric") == metric


def test_dark_and_light_differ(browser, explanation, tmp_path):
    colors = set()
    for scheme in ("light", "dark"):
        page = opened(browser, explanation, tmp_path, color_scheme=scheme)
        colors.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.click("header .theme")
        colors.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert page.faults == []
        page.context.close()
    assert len(colors) == 2


def test_a_program_of_ten_thousand_equations_opens_within_seconds(browser, tmp_path):
    def long(x):
        for i in range(2500):
            x = jnp.sin(x) * 1.5
            x = x - (x + i)
        return x

    explanation = px.explain(long, compile=False)(1.0)
    assert len(explanation.model["programs"][0]["equations"]["op"]) >= 10_000
    page = opened(browser, explanation, tmp_path)
    # Measured by the page itself, from when its script begins to when all is drawn.
    assert int(page.evaluate("document.documentElement.dataset.ready")) < 1000 * SECONDS_TO_OPEN
    page.fill("input[type=search]", "sin")
    page.keyboard.press("Enter")
    assert page.text_content("g.node.selected > .label") == "sin"
    assert page.locator("g.node").count() < 500 and page.faults == []
    page.context.close()


def test_an_exported_function_opens(browser, tmp_path):
    exported = px.export.export(px.jit(network))([jnp.ones((8, 8))] * 2, jnp.ones((4, 8)))
    page = opened(browser, px.explain(exported)(), tmp_path)
    page.fill("input[type=search]", "dot_general")
    page.keyboard.press("Enter")
    assert page.text_content("g.node.selected > .label") == "dot_general" and page.faults == []
    page.context.close()


def test_in_a_notebook_it_is_a_frame(browser, explanation, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body>{explanation._repr_html_()}</body>", encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.frame_locator("iframe").locator("h1").inner_text() == "network"
    page.close()


def test_the_bundle_is_made_of_the_sources():
    """The script in the package says which sources it was made of; it is small, and comes with its licences."""
    digest = hashlib.sha256()
    for path in [*sorted((SOURCES / "src").iterdir(), key=lambda path: path.name), SOURCES / "package.json"]:
        digest.update(path.read_bytes())
    assets = ROOT / "purax" / "explorer" / "assets"
    script = (assets / "explorer.js").read_bytes()
    assert digest.hexdigest()[:16] in script[:120].decode(), "the sources have changed: run `make explorer`"
    assert len(script) < 1_500_000
    licences = (assets / "LICENSES.txt").read_text()
    for name in ("@dagrejs/dagre", "d3-zoom", "highlight.js"):
        assert f"{name} " in licences
