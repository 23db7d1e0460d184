"""Makes a virtual environment and installs requirements into it, showing one line of progress.

Called by the Makefile with the machine's own Python, so it needs nothing but the standard library, and an older
Python must be able to read it, to say that it is too old. pip's own output is shown only if it fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import venv
from pathlib import Path


class Progress:
    """One line on a terminal, redrawn in place; two lines (start and end) anywhere else."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.start = time.monotonic()
        self.drawn = 0.0
        self.redraw = sys.stdout.isatty()
        if not self.redraw:
            print(f"{title} ...", flush=True)

    def update(self, what: str) -> None:
        now = time.monotonic()
        if self.redraw and now - self.drawn > 0.05:
            self.drawn = now
            print(f"\r\x1b[K{self.title}: {what[:60]}", end="", flush=True)

    def close(self, what: str) -> None:
        line = f"{self.title}: {what} ({time.monotonic() - self.start:.0f} s)"
        print(f"\r\x1b[K{line}" if self.redraw else line, flush=True)


def make_environment(folder: Path) -> Path:
    """Creates `folder` if it holds no environment yet; returns its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        try:
            venv.create(folder, with_pip=True)
        except (subprocess.CalledProcessError, OSError) as error:
            raise SystemExit(
                f"cannot make a virtual environment in {folder}: {error}\n"
                "On Debian and Ubuntu, install the package python3-venv first."
            ) from None
    return python


def install(python: Path, requirements: list[str], progress: Progress) -> tuple[bool, str]:
    """Runs pip; returns whether it succeeded, and everything it said."""
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]
    said = []
    with subprocess.Popen(
        command + requirements, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            said.append(line)
            words = line.split()
            if words and words[0] in ("Collecting", "Downloading", "Building", "Installing"):
                progress.update(" ".join(words))
    return pip.returncode == 0, "".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the virtual environment, made if it is not there")
    parser.add_argument("-e", "--editable", help="a project to install in place, with extras: .[dev]")
    parser.add_argument("--optional", help="a requirement whose absence is reported but is no failure")
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):  # noqa: UP036
        running = ".".join(map(str, sys.version_info[:3]))
        raise SystemExit(f"purax needs Python 3.11 or newer, not {running}; try: make PYTHON=python3.11 ...")
    wanted = arguments.optional or arguments.editable
    progress = Progress(f"setting up {arguments.folder} for {wanted}")
    python = make_environment(arguments.folder)
    if arguments.optional:
        done, _ = install(python, ["--only-binary=:all:", arguments.optional], progress)
        progress.close("done" if done else "no suitable package found, going on without it")
        return 0
    done, said = install(python, ["--editable", arguments.editable], progress)
    progress.close("done" if done else "failed")
    if not done:
        sys.stderr.write(said)
    return not done


if __name__ == "__main__":
    sys.exit(main())
