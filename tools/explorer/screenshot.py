"""Makes the picture of docs/look_inside.md: the page of examples/look_inside.py, in Chromium (needs playwright)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder, "page.html")
        python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
        subprocess.run([python, "examples/look_inside.py", str(page_file)], cwd=ROOT, check=True)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 820})
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.fill("input[type=search]", "tanh")
        page.keyboard.press("Enter")
        page.wait_for_timeout(800)
        page.screenshot(path=str(ROOT / "docs" / "assets" / "explorer.png"))
        browser.close()


if __name__ == "__main__":
    main()
