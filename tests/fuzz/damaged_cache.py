"""Cache entries that were damaged or altered, with and without a right signature: each is a miss, or the program.

The entries are real compiled programs. What reaches XLA is watched: never anything but what the compiler wrote.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from purax.config import config
from purax.xla import client, compiler, disk_cache, private_files
from purax.xla.execute import BufferType, device_put, to_numpy

PROGRAM = """module @altered {{
  func.func public @main(%x: tensor<{size}xf32>) -> tensor<{size}xf32> {{
    %c = stablehlo.constant dense<{amount}.0> : tensor<{size}xf32>
    %y = stablehlo.add %x, %c : tensor<{size}xf32>
    return %y : tensor<{size}xf32>
  }}
}}"""
SIZES = (3, 700)
Damage = Callable[[random.Random, bytes], bytes]


def flip_bits(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 8, 100])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content))]


def extend(rng: random.Random, content: bytes) -> bytes:
    return content + rng.randbytes(rng.choice([1, 8, 1000]))


def overwrite(rng: random.Random, content: bytes) -> bytes:
    start = rng.randrange(len(content))
    piece = rng.randbytes(rng.choice([1, 4, 8, 64])) if rng.random() < 0.5 else b"\xff" * 8
    return content[:start] + piece + content[start + len(piece) :]


def cut_out(rng: random.Random, content: bytes) -> bytes:
    start, end = sorted(rng.randrange(len(content)) for _ in range(2))
    return content[:start] + content[end:]


def repeat(rng: random.Random, content: bytes) -> bytes:
    start, end = sorted(rng.randrange(len(content)) for _ in range(2))
    return content[:end] + content[start:]


DAMAGES: tuple[Damage, ...] = (flip_bits, flip_bits, truncate, extend, overwrite, cut_out, repeat)


class Entry:
    """A compiled program on disk."""

    def __init__(self, folder: Path, size: int, amount: int):
        self.text, self.size, self.amount = PROGRAM.format(size=size, amount=amount), size, amount
        before = set(folder.glob("*.purax"))
        self.run()
        (self.path,) = set(folder.glob("*.purax")) - before
        self.key = bytes.fromhex(self.path.stem)
        self.content = self.path.read_bytes()
        self.payload = disk_cache.read(self.key)
        assert self.payload is not None

    def run(self) -> bool:
        """Whether the program gives the right result, as in a new process."""
        compiler.clear_memory()
        device = client.devices("cpu")[0]
        aval = BufferType((self.size,), np.dtype(np.float32))
        program = compiler.compile_program(self.text, [aval], (device,))
        result = to_numpy(program([device_put(np.zeros(self.size, np.float32), device)])[0])
        return bool((result == self.amount).all())


def alter(rng: random.Random, entry: Entry, other: Entry, secret: bytes) -> tuple[str, bytes]:
    """What is done to an entry, and the bytes: of the file, of the machine code, or of the signed parts."""
    damage = rng.choice(DAMAGES)
    kind = rng.choice(["file", "code, right check sum", "code, wrong key", "parts, right key", "swapped"])
    start = disk_cache._HEADER.size
    if kind == "swapped":
        return "the entry of another program", other.content
    if kind == "file":
        return f"{damage.__name__} of the file", damage(rng, entry.content)
    if kind == "parts, right key":  # a file that was damaged before it was signed
        altered = damage(rng, entry.content[:start] + entry.content[start + 32 :])
        header, packed = altered[:start], altered[start:]
        return f"{damage.__name__}, then signed", header + disk_cache._sign(secret, header, packed) + packed
    assert entry.payload is not None
    payload = damage(rng, entry.payload)
    header = disk_cache._HEADER.pack(disk_cache.MAGIC, entry.key, len(payload))
    packed = disk_cache.zlib.compress(payload, 1)
    if kind == "code, wrong key":
        signature = disk_cache._sign(rng.randbytes(32), header, packed)
    else:
        signature = disk_cache.hashlib.sha256(packed).digest()
    return f"{damage.__name__} of the {kind}", header + signature + packed


def run(seed: int) -> Iterator[str | None]:
    rng = random.Random(seed)
    deserialize = compiler.jaxlib_api.deserialize
    reached: list[bytes] = []

    def watched(owner, data, *args):
        reached.append(data)
        return deserialize(owner, data, *args)

    logger = logging.getLogger("purax")
    level = logger.level
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = config.override(
            compilation_cache_dir=name,
            enable_compilation_cache=True,
            persistent_cache_min_compile_time_secs=0.0,
        )
        with settings:
            entries = [Entry(folder, size, amount) for amount, size in enumerate(SIZES, 1)]
            secret = private_files.read_key(name)
            assert secret is not None
        payloads = {entry.payload for entry in entries}
        try:
            compiler.jaxlib_api.deserialize = watched
            logger.setLevel(logging.ERROR)
            for number in range(10**9):
                entry, other = rng.sample(entries, 2)
                what, content = alter(rng, entry, other, secret)
                entry.path.write_bytes(content)
                os.chmod(entry.path, 0o600)
                reached.clear()
                with settings:
                    found = disk_cache.read(entry.key)
                    is_right = found is None or found == entry.payload
                    if number % 50 == 0:  # the whole way, which compiles
                        entry.path.write_bytes(content)
                        is_right &= entry.run()
                if is_right and payloads.issuperset(reached):
                    yield None
                else:
                    yield f"# seed {seed}, try {number}: {what}\nentry = bytes.fromhex({content.hex()!r})"
        finally:
            compiler.jaxlib_api.deserialize = deserialize
            logger.setLevel(level)
            compiler.clear_memory()
