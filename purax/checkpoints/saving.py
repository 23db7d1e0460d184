"""`save`: a tree of arrays to a folder, by all processes at once, in the background if wished.

A folder holds `manifest.json` and, for each save, a folder of its own with a file of each process. The manifest names
the files that belong to it; it is replaced in one step when all of them are on the disk, and only then are files of
earlier saves removed. So whoever reads sees a whole checkpoint at every moment, whatever fails in between.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import sys
import threading
import zlib
from concurrent.futures import Future
from typing import Any

from purax.checkpoints import files, interchange
from purax.checkpoints.leaves import Leaf, bytes_of, take
from purax.core.source import located
from purax.export.trees import tree_to_json
from purax.tree.registry import keystr, tree_flatten_with_path
from purax.xla.processes import group

MANIFEST = "manifest.json"
VERSION = 1
_ALIGNMENT = 64
logger = logging.getLogger("purax")
_last: dict[str, threading.Thread] = {}


class Saving:
    """A save that goes on in the background."""

    def __init__(self, future: Future):
        self._future = future

    def result(self) -> None:
        """Waits until the checkpoint is whole; raises what went wrong."""
        self._future.result()

    def done(self) -> bool:
        """Whether it has ended, well or badly."""
        return self._future.done()

    def __repr__(self) -> str:
        return f"<Saving, {'done' if self.done() else 'under way'}>"


def save(path: str | os.PathLike[str], tree: Any, *, wait: bool = True) -> Saving:
    """Writes a tree of arrays as a checkpoint; all processes of a group call it together.

    A folder is written by all processes in parallel, each the parts of arrays that it has; all must see the same file
    system. A checkpoint that is there is replaced in one step, at the end: whatever fails before leaves it as it was.
    A path that ends in `.safetensors` or `.npz` is one file of that format, with names of leaves joined by dots.

    Args:
        path: the folder, or the file.
        tree: the tree: arrays (random keys, too), numbers, texts and None.
        wait: False returns as soon as the values are copied; they may then be donated or changed, while the checkpoint
            is written in the background.

    Returns:
        What waits for the end: `saving.result()`.

    >>> import purax as px, purax.numpy as jnp, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> saving = px.checkpoints.save(folder + "/step", {"w": jnp.arange(3), "step": 7}, wait=False)
    >>> saving.result()
    >>> px.checkpoints.load(folder + "/step")
    {'step': 7, 'w': Array([0, 1, 2], dtype=int32)}
    """
    path = os.path.abspath(os.fspath(path))
    found, structure = tree_flatten_with_path(tree)
    if interchange.is_file(path):
        return _in_background(path, interchange.writer(path, tree), wait)
    if os.path.exists(path) and not os.path.isdir(path):
        raise located(ValueError, f"save: {path} is a file; a checkpoint is a folder")
    if os.path.isdir(path) and os.listdir(path) and not os.path.exists(os.path.join(path, MANIFEST)):
        others = [name for name in os.listdir(path) if not name.startswith(("save-", f"{MANIFEST}.part-"))]
        if others:
            raise located(
                ValueError, f"save: the folder {path} holds other files, such as {others[0]!r}; choose another"
            )
    member = group.current
    number = 0 if member is None else member.id
    leaves = {keystr(where): take(x, keystr(where), number == 0) for where, x in found}
    try:
        made = tree_to_json(structure)
    except (TypeError, ValueError):
        made = None  # nodes of a type that has no name: `load(like=...)` gives the structure
    return _in_background(path, lambda: _write(path, leaves, made, member, number), wait)


def _in_background(path: str, function: Any, wait: bool) -> Saving:
    """Runs one save after the other for each path; the interpreter does not end before they have."""
    future: Future = Future()
    before = _last.get(path)

    def run() -> None:
        if before is not None:
            before.join()
        try:
            function()
            future.set_result(None)
        except BaseException as error:
            if not wait:  # nobody may ask for the result
                logger.warning("a checkpoint in the background failed: %s", error)
            future.set_exception(error)

    if wait:
        run()
        future.result()
        return Saving(future)
    thread = _last[path] = threading.Thread(target=run, name="purax-save")
    thread.start()
    return Saving(future)


def _write(path: str, leaves: dict[str, Leaf], made: Any, member: Any, number: int) -> None:
    """Writes the part of this process, and, in process 0, the manifest when all others have written theirs."""
    token = secrets.token_hex(6)
    if member is not None:
        token = member.gather(f"save {path}", token, what="to save a checkpoint")[0]
    folder, name = os.path.join(path, f"save-{token}"), f"process-{number}.bin"
    failure, chunks = None, []
    try:
        files.make_folder(folder)
        chunks = _write_parts(os.path.join(folder, name), leaves)
        files.bring_to_disk(folder)
    except Exception as error:
        failure = f"{type(error).__name__}: {error}"
        if member is None:
            files.remove(folder)
            raise
    told = [{"chunks": chunks, "failure": failure}]
    if member is not None:
        told = member.gather(f"save {path} written", told[0], what="to save a checkpoint")
        failed = [(i, one["failure"]) for i, one in enumerate(told) if one["failure"]]
        if failed:
            if number == 0:
                files.remove(folder)
            raise RuntimeError(f"save: process {failed[0][0]} could not write its part of {path}: {failed[0][1]}")
    failure = None
    if number == 0:
        try:
            _finish(path, token, leaves, made, told)
        except Exception as error:
            if member is None:
                raise
            failure = f"{type(error).__name__}: {error}"
    if member is not None:
        failure = member.gather(f"save {path} done", failure, what="to save a checkpoint")[0]
        if failure:
            raise RuntimeError(f"save: process 0 could not finish {path}: {failure}")


def _write_parts(path: str, leaves: dict[str, Leaf]) -> list[list[Any]]:
    """Writes the parts of this process to one file; says of each its leaf, bounds, place, length and checksum."""
    chunks: list[list[Any]] = []
    pieces: list[bytes | memoryview] = []
    place = 0
    for key, leaf in leaves.items():
        for part in leaf.parts:
            data = bytes_of(part.value)
            chunks.append([key, part.bounds, place, len(data), zlib.crc32(data)])
            padding = -len(data) % _ALIGNMENT
            pieces += [data, bytes(padding)]
            place += len(data) + padding
    files.write(path, pieces)
    return chunks


def _finish(path: str, token: str, leaves: dict[str, Leaf], made: Any, told: list[dict[str, Any]]) -> None:
    """Replaces the manifest, and removes what belongs to earlier saves."""
    folder = os.path.join(path, f"save-{token}")
    missing = [i for i in range(len(told)) if not os.path.exists(os.path.join(folder, f"process-{i}.bin"))]
    if missing:
        raise RuntimeError(
            f"{group.names(missing)} wrote to {folder}, and process 0 does not see it there: the folder must be on a "
            "file system that all processes share"
        )
    manifest = {
        "purax": VERSION,
        "folder": os.path.basename(folder),
        "byteorder": sys.byteorder,
        "tree": made,
        "leaves": {
            key: {
                **leaf.about,
                **({} if "plain" in leaf.about else {"parts": []}),
            }
            for key, leaf in leaves.items()
        },
    }
    for i, one in enumerate(told):
        for key, *chunk in one["chunks"]:
            manifest["leaves"][key]["parts"].append([f"process-{i}.bin", *chunk])
    files.bring_to_disk(path)
    files.replace(os.path.join(path, MANIFEST), [json.dumps(manifest).encode()])
    for name in os.listdir(path):
        if name.startswith("save-") and name != os.path.basename(folder):
            files.remove(os.path.join(path, name))


__all__ = ["Saving", "save"]
