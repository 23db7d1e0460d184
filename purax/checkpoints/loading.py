"""`load`: a tree of arrays from a checkpoint, onto any mesh: each process reads the parts that its devices need."""

from __future__ import annotations

import json
import math
import mmap
import os
import sys
import zlib
from typing import Any

import numpy as np

from purax.api.stages import ShapeDtypeStruct
from purax.checkpoints import interchange
from purax.checkpoints.leaves import is_numpy, overlap, plain_value
from purax.checkpoints.saving import MANIFEST, VERSION
from purax.core import dtypes
from purax.core.source import located
from purax.errors import shown
from purax.execution.device_put import put
from purax.export.trees import tree_from_json
from purax.interpreters.arguments import to_array
from purax.random.keys import wrap_key_data
from purax.sharding.global_arrays import make_array_from_callback
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import keystr, tree_flatten_with_path, tree_unflatten


def load(path: str | os.PathLike[str], like: Any = None, *, shardings: Any = None) -> Any:
    """Reads a tree of arrays that `save` wrote.

    Args:
        path: the folder, or a `.safetensors` or `.npz` file.
        like: a tree of the same structure, whose leaves say shapes and dtypes, and, by their sharding, where the arrays
            shall lie: arrays or `ShapeDtypeStruct`s. Shapes must be those of the checkpoint; other dtypes convert.
            Needed for trees with nodes of one's own types, which a file does not know.
        shardings: where the arrays shall lie: one sharding, or a prefix of the tree. It wins over those of `like`.

    Returns:
        The tree. Without a sharding, arrays are where new arrays are; those of NumPy stay such, and so do dtypes that
        purax does not have unless `enable_x64` is set.

    >>> import purax as px, purax.numpy as jnp, tempfile
    >>> file = tempfile.mkdtemp() + "/weights.safetensors"
    >>> _ = px.checkpoints.save(file, {"layer": {"w": jnp.ones(2)}})
    >>> px.checkpoints.load(file, like={"layer": {"w": px.ShapeDtypeStruct((2,), jnp.bfloat16)}})
    {'layer': {'w': Array([1, 1], dtype=bfloat16)}}
    """
    path = os.path.abspath(os.fspath(path))
    if interchange.is_file(path):
        stored, made = interchange.read(path), None
    else:
        stored, made = _stored(path)
    if like is not None:
        found, structure = tree_flatten_with_path(like)
        wanted = {keystr(where): x for where, x in found}
        if interchange.is_file(path):
            renamed = {interchange.name_of(where): keystr(where) for where, _ in found}
            stored = {renamed.get(name, name): leaf for name, leaf in stored.items()}
        _check_names(path, stored, wanted)
    else:
        if interchange.is_file(path):
            return {name: _array(leaf, None, None, name) for name, leaf in stored.items()}
        if made is None:
            raise located(
                ValueError,
                f"load: the tree in {path} has nodes of types that have no name in files; give its structure: "
                "load(path, like=tree)",
            )
        structure = tree_from_json(made)
        wanted = dict.fromkeys(stored)
    places = [None] * len(wanted)
    if shardings is not None:
        places = broadcast_prefix(shardings, tree_unflatten(structure, list(wanted)), is_leaf=lambda x: x is None)
    leaves = [
        _array(stored[name], x, place, name) for (name, x), place in zip(wanted.items(), places, strict=True)
    ]
    return tree_unflatten(structure, leaves)


class StoredArray:
    """An array in the files of a checkpoint.

    Arguments:
        folder: of its files.
        about: what the manifest says.
        name: where it is in the tree.
    """

    def __init__(self, folder: str, about: dict[str, Any], name: str):
        self.folder, self.name, self.about = folder, name, about
        self.shape = tuple(about["shape"])
        self.dtype = np.dtype(dtypes.as_exact_dtype(about["dtype"]))
        self.key = about.get("key")
        self.is_numpy = bool(about.get("numpy"))

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        bounds = [s.indices(n)[:2] for s, n in zip(index, self.shape, strict=True)]
        result = np.empty([stop - start for start, stop in bounds], self.dtype)
        filled = 0
        for file, part, place, length, checksum in self.about["parts"]:
            part = [tuple(pair) for pair in part]
            common = overlap(part, bounds)
            if common is None and result.ndim:
                continue
            value = self._read(file, part, place, length, checksum, common)
            there = tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(common or [], bounds, strict=True))
            result[there] = value
            filled += value.size
        if filled < result.size:
            raise ValueError(f"load: parts of {self.name} are missing in {self.folder}")
        return result

    def _read(
        self, file: str, part: list, place: int, length: int, checksum: int, common: list | None
    ) -> np.ndarray:
        """What a part has of what is needed; the bytes are checked if all of them are needed."""
        path = os.path.join(self.folder, os.path.basename(file))
        shape = [stop - start for start, stop in part]
        if math.prod(shape) * self.dtype.itemsize != length:
            raise ValueError(f"load: the manifest of {self.folder} is damaged: {self.name} has a wrong length")
        if length == 0:
            return np.empty(shape, self.dtype)
        try:
            with open(path, "rb") as stream:
                if os.fstat(stream.fileno()).st_size < place + length:
                    raise ValueError(f"load: {path} is shorter than its manifest says; it was cut off")
                mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise ValueError(f"load: {path}, with a part of {self.name}, cannot be read: {error.strerror}") from None
        data = memoryview(mapped)[place : place + length]
        if (common is None or common == part) and zlib.crc32(data) != checksum:
            raise ValueError(f"load: the bytes of {self.name} in {path} are not those that were written")
        value = np.frombuffer(data, self.dtype).reshape(shape)
        if common is not None:
            value = value[tuple(slice(a - c, b - c) for (a, b), (c, _) in zip(common, part, strict=True))]
        return value


def _stored(path: str) -> tuple[dict[str, Any], Any]:
    """What a folder holds, by the paths of leaves, and the structure of the tree."""
    try:
        with open(os.path.join(path, MANIFEST), "rb") as file:
            manifest = json.loads(file.read())
    except FileNotFoundError:
        raise located(
            FileNotFoundError,
            f"load: there is no checkpoint at {path}; `save` writes {MANIFEST} last, when it is whole",
        ) from None
    except ValueError:
        raise located(ValueError, f"load: {path}/{MANIFEST} is damaged") from None
    if manifest.get("purax") != VERSION or manifest["byteorder"] != sys.byteorder:
        raise located(
            ValueError,
            f"load: {path} has version {manifest.get('purax')!r} and byte order {manifest.get('byteorder')!r}; this "
            f"purax reads version {VERSION} and {sys.byteorder!r}",
        )
    folder = os.path.join(path, os.path.basename(manifest["folder"]))
    stored: dict[str, Any] = {}
    for name, about in manifest["leaves"].items():
        stored[name] = about if "plain" in about else StoredArray(folder, about, name)
    return stored, manifest["tree"]


def _check_names(path: str, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    missing, more = [n for n in wanted if n not in stored], [n for n in stored if n not in wanted]
    if missing or more:
        said = [f"it has no {missing[0]}" if missing else "", f"it has {more[0]}, `like` has not" if more else ""]
        raise located(
            ValueError, f"load: the checkpoint at {path} is that of another tree: {'; '.join(filter(None, said))}"
        )


def _array(stored: Any, like: Any, place: Any, name: str) -> Any:
    """A leaf as it is wanted."""
    if isinstance(stored, dict):
        return plain_value(stored)
    dtype = stored.dtype
    stays_numpy = stored.is_numpy if like is None else is_numpy(like)
    if like is not None:
        own = like if isinstance(like, ShapeDtypeStruct) or is_numpy(like) else to_array(like)
        is_key = dtypes.is_extended(own.dtype)
        shape = stored.shape[:-1] if stored.key else stored.shape
        if tuple(own.shape) != shape or is_key != bool(stored.key):
            raise located(
                ValueError,
                f"load: {name} has shape {tuple(own.shape)} and dtype {dtypes.dtype_name(own.dtype)} in `like`, and "
                f"{shape} {'of keys' if stored.key else dtypes.dtype_name(dtype)} in the checkpoint",
            )
        dtype = dtype if is_key else own.dtype
        given = isinstance(like, ShapeDtypeStruct) or getattr(own, "committed", False)
        if place is None and given:
            place = own.sharding
    if place is None:
        own_value = _converted(stored[(slice(None),) * len(stored.shape)], dtype)
        if not stored.key and (stays_numpy or dtypes.as_available_dtype(dtype) != dtype):
            return own_value
        value = to_array(own_value)
        return value if not stored.key else wrap_key_data(value, impl=stored.key)
    if stored.key:
        keys = wrap_key_data(_converted(stored[(slice(None),) * len(stored.shape)], dtype), impl=stored.key)
        return put(keys, place)
    try:
        return make_array_from_callback(stored.shape, place, lambda index: _converted(stored[index], dtype), dtype)
    except ValueError as error:
        raise located(
            ValueError, f"load: {name} of shape {stored.shape} cannot lie as {shown(place)}: {error}"
        ) from None


def _converted(value: np.ndarray, dtype: Any) -> np.ndarray:
    return value if value.dtype == dtype else value.astype(dtype)
