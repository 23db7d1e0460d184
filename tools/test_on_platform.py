"""Runs the slices of the tests that another platform is tried by, and says in a line each how they went.

    python tools/test_on_platform.py cuda --slices 'laws rules' --workers 8 -- -k eigh
    python tools/test_on_platform.py cuda --list

The slices and their minutes are in `tests/platforms.py`. A slice that takes longer is ended, and counts as failed; so
does one whose process ends by a signal, with the test that it died in. What failed is written to
`build/platform/<slice>.txt`, one line for each test and then all that pytest said.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.platforms import LEFT_OUT, SLICES, slice_of  # noqa: E402

REPORTS = ROOT / "build" / "platform"


def files_of(name: str) -> list[str]:
    """The files of a slice."""
    found = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    return [path for path in found if slice_of(path) == name]


def run(name: str, platform: str, workers: int, minutes: float, options: list[str]) -> bool:
    """Runs one slice; whether all went well."""
    environment = {**os.environ, "TEST_PLATFORM": platform}
    command = [sys.executable, "-m", "pytest", "-v", "--no-header", "-p", "no:cacheprovider", "--tb=short"]
    command += ["-n", str(workers), "--dist", "worksteal", "--max-worker-restart=8"] if workers > 1 else []
    start = time.monotonic()
    try:
        done = subprocess.run(
            [*command, *files_of(name), *options],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=60 * minutes,
        )  # fmt: skip
        said, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace") + f"\nended after {minutes} minutes\n"
        code = -1
    seconds = time.monotonic() - start
    lines = said.splitlines()
    # Each test is named as it ends, so that a slice which is ended early says what had failed by then.
    named = (re.search(r"\b((?:FAILED|ERROR) +tests/.*?)( - .*)?$", line) for line in lines)
    failed = sorted({found[1]: found[0] for found in named if found}.values())
    last = [line.strip("= ") for line in lines if re.search(r"\d+ (passed|failed|deselected|error)", line)]
    summary = last[-1] if last else (lines[-1] if lines else "nothing was said")
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{name}.txt").write_text("\n".join([*failed, "", said]))
    print(f"{name:16} {'ok' if code == 0 else f'exit {code}':8} {seconds:6.0f} s  {summary}", flush=True)
    for line in failed[:20]:
        print(f"    {line[:230]}", flush=True)
    if len(failed) > 20:
        print(f"    … and {len(failed) - 20} more: {(REPORTS / f'{name}.txt').relative_to(ROOT)}", flush=True)
    if code == 3:
        raise SystemExit(f"{lines[-1] if lines else ''}".strip("! "))
    return code in (0, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("platform", help="cuda, rocm, tpu or cpu")
    parser.add_argument("--slices", default="", help="names, separated by spaces or commas; all by default")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, help="the most that a slice may take, in place of its own")
    parser.add_argument("--list", action="store_true", help="show the slices, and what is left out and why")
    parser.add_argument("options", nargs="*", help="for pytest, after --")
    arguments = parser.parse_args()
    if arguments.list:
        for name, (minutes, _) in SLICES.items():
            print(f"{name:16} {minutes:3} min  {' '.join(files_of(name))}")
        for pattern, reason in LEFT_OUT.items():
            print(f"left out: {pattern:42} {reason}")
        return
    names = re.split(r"[ ,]+", arguments.slices.strip()) if arguments.slices.strip() else list(SLICES)
    unknown = set(names) - set(SLICES)
    if unknown:
        parser.error(f"there are no slices {', '.join(sorted(unknown))}; there are {', '.join(SLICES)}")
    results = [
        run(n, arguments.platform, arguments.workers, arguments.minutes or SLICES[n][0], arguments.options)
        for n in names
    ]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
