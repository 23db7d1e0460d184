"""The extensions in C without memory: each of their calls into Python that may fail does so once.

Run as a program with a folder to build in, this imports purax with extensions that were compiled with `faulty_calls.h`,
and lets each call of some programs fail in turn. What comes of it is the right result or a `MemoryError`, and the next
run of the program is right. Wrong outcomes are printed; `--all` tries all calls, else some of long programs.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.machinery
import importlib.util
import random
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NAMES = ("purax.core._bind", "purax.execution._dispatch")
FEW = 15


def build(folder: Path) -> dict[str, ctypes.PyDLL]:
    """Compiles the extensions, and makes imports find them."""
    paths = {name: folder / (name + sysconfig.get_config_var("EXT_SUFFIX")) for name in NAMES}
    compilers = [
        subprocess.Popen(
            [
                "cc",
                "-w",
                "-Werror=implicit-function-declaration",
                "-g",
                "-O1",
                "-shared",
                "-fPIC",
                "-I",
                sysconfig.get_paths()["include"],
            ]
            + ["-include", ROOT / "tests/core/faulty_calls.h"]
            + [ROOT / (name.replace(".", "/") + ".c"), "-o", path]
        )
        for name, path in paths.items()
        if not path.exists()
    ]
    assert all([each.wait() == 0 for each in compilers])

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            if name in paths:
                return importlib.util.spec_from_file_location(name, paths[name])
            return None

    sys.meta_path.insert(0, Finder)
    libraries = {}
    for name, path in paths.items():
        library = libraries[name] = ctypes.PyDLL(str(path))
        library.fail_after.argtypes, library.fail_after.restype = [ctypes.c_long], None
        library.asked.restype = ctypes.c_long
    return libraries


def programs() -> dict[str, Callable[[int], Any]]:
    """Functions of a number that is another each time, for shapes that were never met."""
    import numpy as np

    import purax as px
    import purax.numpy as jnp
    from purax import lax

    warm = jnp.asarray(np.arange(6.0, dtype=np.float32).reshape(2, 3))
    function = px.jit(lambda x, y: x * 2 + y)
    tree = px.jit(lambda t: {"a": t["a"] + t["b"][0], "c": [t["b"][1] * 2]})
    settings = px.jit(
        lambda x, n, *, name: x + n if name == "a" else x * n, static_argnums=1, static_argnames="name"
    )
    giving = px.jit(lambda x: x + 1, donate_argnums=0)

    def new(i: int) -> Any:
        return jnp.asarray(np.arange(1.0 + i, dtype=np.float32))

    def loss(x: Any) -> Any:
        return jnp.sum(jnp.sin(x) * x + x[0])

    def operators(x: Any) -> Any:
        return [
            x + x,
            x * 2.0,
            3 - x,
            x / 7,
            x < 1,
            x == x,
            x[1:],
            x[None, 0],
            x.reshape(-1),
            x.reshape(1, -1),
            x.T,
        ]

    def called_thrice(f: Any, make: Callable[[], Any]) -> Any:
        return [f(*make()) for _ in range(3)]

    return {
        "operators": lambda i: operators(warm),
        "operators on new shapes": lambda i: operators(new(i)),
        "functions": lambda i: [jnp.where(warm > 2, warm, 0), jnp.array([1.5, True, 2]), lax.transpose(warm, (1, 0))],
        "functions on new shapes": lambda i: [jnp.sum(new(i), 0), lax.pad(new(i), 0.0, [(1, 1, 0)]), jnp.sort(new(i))],
        "jvp": lambda i: px.jvp(loss, (warm[0],), (warm[1],)),
        "grad": lambda i: px.value_and_grad(loss)(warm[0]),
        "grad on new shapes": lambda i: called_thrice(px.grad(loss), lambda: (new(i),)),
        "vmap": lambda i: px.vmap(loss)(warm),
        "vmap on new shapes": lambda i: called_thrice(px.vmap(jnp.sin), lambda: (new(i)[:, None] * warm[0],)),
        "hessian": lambda i: px.hessian(loss)(warm[0]),
        "make_jaxpr": lambda i: str(px.make_jaxpr(lambda x: (loss(x), lax.iota("int32", 3)))(warm[0])),
        "jit": lambda i: function(warm, warm),
        "jit with numbers": lambda i: function(warm, 1.5),
        "jit with arrays of NumPy": lambda i: function(np.ones((2, 3), np.float32), np.ones(3)),
        "jit with trees": lambda i: called_thrice(tree, lambda: ({"b": (warm[0], 2.0), "a": np.ones(3)},)),
        "jit with settings": lambda i: [settings(warm, 3, name="a"), settings(warm, (4.0, True)[i % 2], name="b")],
        "jit that is given arrays": lambda i: giving(warm + 1),
    }  # fmt: skip


def shown(result: Any) -> list[Any]:
    """Values that can be compared."""
    import numpy as np

    import purax as px

    return [x if isinstance(x, str) else np.asarray(x).tolist() for x in px.tree.leaves(result)]


def chosen(count: int, tries_all: bool) -> list[int]:
    if tries_all or count <= 4 * FEW:
        return list(range(count))
    return sorted(
        {*range(FEW), *random.Random(count).sample(range(count), 2 * FEW), *range(count - FEW, count)}
    )


def outcomes(libraries: dict[str, ctypes.PyDLL], tries_all: bool) -> Iterator[tuple[str, bool]]:
    """What was tried, and whether it went well."""
    number = 50  # sizes of new shapes
    for name, program in programs().items():
        program(number), program(number + 1)
        for where, library in libraries.items():
            number += 2
            library.fail_after(-1)
            program(number)
            for count in chosen(library.asked(), tries_all):
                number += 1
                what = f"{name}: call {count} of {where}"
                library.fail_after(count)
                try:
                    result = program(number)
                    library.fail_after(-1)
                except MemoryError:
                    library.fail_after(-1)
                    result = program(number)
                except BaseException as error:
                    library.fail_after(-1)
                    yield f"{what}: {type(error).__name__}: {error}", False
                    continue
                yield what, shown(result) == shown(program(number))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    libraries = build(options.folder)
    sys.path.insert(0, str(ROOT))
    tried = wrong = 0
    for what, is_right in outcomes(libraries, options.all):
        tried += 1
        if not is_right:
            wrong += 1
            print(what)
    print(f"{tried} calls failed, {wrong} outcomes were wrong")
    return bool(wrong) or not tried


if __name__ == "__main__":
    sys.exit(main())
