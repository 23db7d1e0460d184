"""Files of exported functions that were damaged or made up, with and without a right check sum: function or ValueError.

A function is also called, differentiated, printed and written again.

This is done in a process of its own, the judge, so that a crash is a failure that can be told.
"""

from __future__ import annotations

import base64
import collections
import copy
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.export import serialization
from tests.fuzz.damaged_cache import DAMAGES

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0  # seconds for one file, after which the judge counts as hanging
LOADED, TOO_LARGE, TOO_LONG = "loaded", "too large to be called", "too long to be waited for"
HEAD = len(serialization.MAGIC) + 10
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63, 2**64, -(2**70), 10**400, 0.5, 1e308, float("nan")),
    *("", "*", "cpu", "tpu", "float32", "int4", "float0", "key:rbg", "key:", "object", "S5", "\ud800", "@main"),
    *("platform", "custom_call:", "custom_call:lapack_spotrf_ffi", "tuple", "none", "dict", "custom", "a.Pair"),
    *('a"b\n', "x" * 20000, float("inf"), [[2], "float32", False], [[], "int32", True]),
    *([], {}, [[]], [None], ["*"], ["none", []], ["tuple", ["*"]], ["list", ["*"]], ["dict", ["a"], ["*"]]),
    *(["ordered_dict", ["b", "a"], ["*", "*"]], ["dict", ["b", "a"], ["*", "*"]], ["dict", [1, "a"], ["*", "*"]]),
    *(["custom", "a.Pair", "", ["*"]], ["custom", "unknown", "", []], ["custom", "a.Pair", "ZmlyCg==", ["*", "*"]]),
)  # fmt: skip
Pair = collections.namedtuple("Pair", "first second")


def register() -> None:
    """What the files name; in the process that writes them, and in the one that reads them."""
    px.export.register_namedtuple_serialization(Pair, serialized_name="a.Pair")


def files() -> list[bytes]:
    """Sound files, of all kinds."""

    def affine(x, *, k):
        return {"y": x * k + 1, "n": (x > 0).sum()}

    def factors(x):
        y = x @ x.T + 3 * jnp.eye(3)
        return jnp.linalg.cholesky(y), jnp.linalg.eigh(y)[1], jnp.linalg.solve(y, x), jnp.linalg.svd(x)[0]

    def flow(pair, i):
        x = lax.fori_loop(0, 4, lambda _, c: jnp.sin(c) * 2, pair.first)
        y = lax.cond(i > 0, lambda: jnp.sort(x), lambda: x[::-1])
        return Pair(y, lax.scan(lambda c, v: (c + v, c * v), pair.first, pair.second))

    def numbers(key, i):
        drawn = px.random.normal(key, (4,), jnp.float32)
        return [lax.top_k(drawn, 2), i // 3, i % 2, None], (px.random.split(key), drawn.astype(jnp.bfloat16))

    def windows(x, i):
        image = x.reshape(1, 1, 6, 6)
        pooled = lax.reduce_window(image, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        convolved = lax.conv_general_dilated(image, image[:, :, :3, :3], (2, 1), "SAME", rhs_dilation=(1, 2))
        rows = x[i].at[i[0]].add(1.0, mode="clip")
        return (
            pooled,
            convolved,
            rows,
            lax.dynamic_slice(x, (i[0], i[1]), (2, 3)),
            jnp.cumsum(x),
            jnp.argmax(x),
        )

    def products(state, x):
        bits = lax.rng_bit_generator(state, (3, 5), jnp.uint32)
        batched = jnp.einsum("bij,bjk->bik", x, x) + lax.reduce_precision(x, 5, 10)
        return bits, batched, x.astype(jnp.int8) @ jnp.ones((3, 2), jnp.int8), lax.population_count(state)

    x = jnp.arange(9.0).reshape(3, 3) / 7
    several = ["cpu", "cuda", "tpu"]
    make = px.export.export
    return [
        bytes(exported.serialize(vjp_order=order))
        for exported, order in (
            (make(px.jit(affine), platforms=several)(x, k=2.0), 2),
            (make(px.jit(factors))(x), 1),
            (make(px.jit(flow))(Pair(x[0], x), 3), 1),
            (make(px.jit(numbers))(px.random.key(0), jnp.arange(5)), 0),
            (make(px.jit(windows))(jnp.arange(36.0).reshape(6, 6), jnp.array([1, 4, 2])), 1),
            (make(px.jit(products))(jnp.arange(4, dtype=jnp.uint32), jnp.ones((2, 3, 3))), 0),
            (make(px.jit(lambda x: jnp.fft.ifft(jnp.fft.fft(x)) * 1j))(jnp.ones(8, jnp.complex64)), 1),
        )
    ]


def parts(data: bytes) -> tuple[Any, bytes]:
    """The description and the modules of a sound file."""
    start = HEAD + int.from_bytes(data[HEAD - 8 : HEAD], "little")
    return json.loads(data[HEAD:start]), data[start:-32]


def joined(description: Any, modules: bytes) -> bytes:
    """A file with a right check sum."""
    written = json.dumps(description)
    text = re.sub(
        r'"nested (\d+)"', lambda found: "[" * int(found[1]) + "]" * int(found[1]), written
    ).encode()
    data = serialization.MAGIC + serialization.VERSION.to_bytes(2, "little") + len(text).to_bytes(8, "little")
    return signed(data + text + modules)


def signed(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


def places(made: Any) -> list[tuple[Any, Any]]:
    """All values inside of a description, as a container and a key."""
    found: list[tuple[Any, Any]] = []
    waiting = [made]
    while waiting:
        item = waiting.pop()
        keys = item if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        found += [(item, key) for key in keys]
        waiting += [item[key] for key in keys]
    return found


def alter_description(rng: random.Random, made: Any) -> None:
    """Changes something in a description, in place."""
    container, key = rng.choice(places(made))
    what = rng.choice(["replace", "replace", "replace", "remove", "double", "exchange", "nest", "number"])
    if what == "replace":
        container[key] = copy.deepcopy(rng.choice(HOSTILE))
    elif what == "remove":
        del container[key]
    elif what == "double" and isinstance(container, list):
        container.insert(key, container[key])
    elif what == "exchange":
        other, place = rng.choice(places(made))
        container[key] = json.loads(json.dumps(other[place]))
    elif what == "nest":
        depth = rng.choice([1, 3, 150, 10_000])
        for _ in range(depth % 1000):
            container[key] = rng.choice([[container[key]], ["tuple", [container[key]]]])
        if depth > 1000:
            container[key] = f"nested {depth}"  # too deep to be written from lists
    elif what == "number" and type(container[key]) is int:
        container[key] += rng.choice([-1, 1, 2**32])


def alter(rng: random.Random, sound: list[bytes]) -> tuple[str, bytes]:
    """What is done, and the file."""
    data = rng.choice(sound)
    damage = rng.choice(DAMAGES)
    kind = rng.choice(
        ["bytes", "bytes, signed", "description", "description", "modules", "modules", "exchanged modules"]
    )
    if kind == "bytes":
        return kind, damage(rng, data)
    if kind == "bytes, signed":
        return kind, signed(damage(rng, data[:-32]))
    description, modules = parts(data)
    if kind == "description":
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            alter_description(rng, description)
    elif kind == "exchanged modules":
        other, modules = parts(rng.choice(sound))
        description["modules"] = other["modules"]
    else:  # one module, with the length that it has then
        sizes = description["modules"]
        chosen = rng.randrange(len(sizes))
        start = sum(sizes[:chosen])
        module = damage(rng, modules[start : start + sizes[chosen]])
        modules = modules[:start] + module + modules[start + sizes[chosen] :]
        sizes[chosen] = len(module)
    return kind, joined(description, modules)


# -- the judge


def argument(aval: Any) -> Any:
    """Some array of a type."""
    if aval.dtype == px.dtypes.float0:
        return np.zeros(aval.shape, px.dtypes.float0)
    if jnp.issubdtype(aval.dtype, px.dtypes.prng_key):
        return px.random.wrap_key_data(
            jnp.zeros((*aval.shape, *aval.dtype.element_shape), jnp.uint32), impl=aval.dtype
        )
    return jnp.ones(aval.shape, aval.dtype)


def is_small(avals: Any) -> bool:
    """Whether arrays of these types can be made here."""
    return sum(int(np.prod(aval.shape, dtype=object)) for aval in avals) < 10**6


def use(data: bytes, loaded: Callable[[], object] = bool) -> str:
    """Does everything with a file; what comes of it. Calls `loaded` as soon as there is a function."""
    try:
        exported = px.export.deserialize(data)
        loaded()
        exported.mlir_module(), exported.mlir_module_serialized, repr(exported)
        while True:
            exported.serialize()
            if not is_small((*exported.in_avals, *exported.out_avals)):
                return TOO_LARGE
            leaves = [argument(aval) for aval in exported.in_avals]
            args, kwargs = px.tree_util.tree_unflatten(exported.in_tree, leaves)
            px.block_until_ready(exported.call(*args, **kwargs))
            if not exported.has_vjp():
                return "function"
            exported = exported.vjp()
    except ValueError as error:
        return "ValueError" if str(error) else "ValueError without a message"
    except BaseException as error:
        if "RESOURCE_EXHAUSTED" in str(error):  # as for any program that needs more memory than there is
            return TOO_LARGE
        return f"{type(error).__name__}: {error}"


def judge() -> None:
    register()
    for line in sys.stdin:
        outcome = use(base64.b64decode(line), lambda: print(json.dumps(LOADED), flush=True))
        print(json.dumps(outcome), flush=True)


class Judge:
    """The process, started again when it died."""

    def __init__(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "PURAX_ENABLE_COMPILATION_CACHE": "0",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.damaged_exports"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, data: bytes) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self.process.kill()

        timer = threading.Timer(PATIENCE, stop)
        timer.start()
        try:
            self.process.stdin.write(base64.b64encode(data) + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            is_loaded = bool(line) and json.loads(line) == LOADED
            if is_loaded:
                line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if line:
            return json.loads(line)
        status = self.process.wait()
        self.end()
        self.__init__()  # type: ignore[misc]
        if is_late.is_set():  # a function may compute for as long as it likes
            return TOO_LONG if is_loaded else f"not loaded after {PATIENCE:.0f} seconds"
        return f"the process ended with {status}"

    def end(self) -> None:
        self.process.kill()
        for file in (self.process.stdin, self.process.stdout):
            file.close()  # type: ignore[union-attr]
        self.process.wait()


OUTCOMES: collections.Counter[str] = collections.Counter()


def run(seed: int) -> Iterator[str | None]:
    rng = random.Random(seed)
    sound = _sound_files()
    judge = Judge()
    try:
        for data in sound:
            assert judge.ask(data) == "function"
        for number in range(10**9):
            kind, data = alter(rng, sound)
            outcome = judge.ask(data)
            OUTCOMES[f"{kind}: {outcome[:60]}"] += 1
            if outcome in ("function", "ValueError", TOO_LARGE, TOO_LONG):
                yield None
            else:
                yield f"# seed {seed}, try {number}, {kind}: {outcome}\ndata = bytes.fromhex({data.hex()!r})"
    finally:
        judge.end()


_made: list[bytes] = []


def _sound_files() -> list[bytes]:
    if not _made:
        register()
        _made.extend(files())
    return _made


if __name__ == "__main__":
    judge()
