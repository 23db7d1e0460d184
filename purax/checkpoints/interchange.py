"""Trees in one file that other libraries read: safetensors, a header in JSON before the bytes, and NumPy's npz."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.checkpoints import files
from purax.checkpoints.leaves import bytes_of, is_numpy
from purax.core import dtypes
from purax.core.source import located
from purax.interpreters.arguments import to_array
from purax.tree.registry import keystr, tree_flatten_with_path
from purax.xla.processes import group

_LONGEST_HEADER = 100 << 20
_NAMES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "uint32": "U32",
    "int32": "I32",
    "uint64": "U64",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def is_file(path: str) -> bool:
    """Whether a path means one file of another library's format."""
    return path.endswith((".safetensors", ".npz"))


def name_of(path: Any) -> str:
    """The name of a leaf in such a file.

    >>> import purax as px
    >>> [(path, _)] = px.tree_util.tree_leaves_with_path({"layers": [1.0]})
    >>> name_of(path)
    'layers.0'
    """
    return keystr(path, simple=True, separator=".")


def writer(path: str, tree: Any) -> Callable[[], None]:
    """What writes a tree to a file, of which values are copied now; in a group process 0 does it."""
    arrays: dict[str, np.ndarray] = {}
    for where, x in tree_flatten_with_path(tree)[0]:
        name = name_of(where)
        if name in arrays:
            raise located(ValueError, f"save: two leaves of the tree have the name {name!r} in a file")
        if is_numpy(x):
            arrays[name] = np.array(x, order="C")
            continue
        value = to_array(x)
        if dtypes.is_extended(value.dtype):
            raise located(TypeError, f"save: {name} is a random key, which {os.path.basename(path)} cannot hold")
        if not value.is_fully_addressable and not value.is_fully_replicated:
            raise located(
                ValueError,
                f"save: {name} is sharded over processes, and {os.path.basename(path)} is one file of one process; "
                "write a folder, or gather the array first (multihost_utils.process_allgather)",
            )
        arrays[name] = np.array(value, order="C")
    member = group.current

    def write() -> None:
        if member is None or member.id == 0:
            files.replace(path, _safetensors(arrays) if path.endswith(".safetensors") else _npz(arrays))
        if member is not None:
            member.gather(f"save {path}", None, what="to save a file")

    return write


def _safetensors(arrays: dict[str, np.ndarray]) -> list[bytes | memoryview]:
    header: dict[str, Any] = {}
    place, parts = 0, []
    for name, x in arrays.items():
        dtype = dtypes.dtype_name(x.dtype)
        if dtype not in _NAMES:
            raise located(
                TypeError, f"save: safetensors has no dtype {dtype}, which {name} has; convert it, or use npz"
            )
        header[name] = {"dtype": _NAMES[dtype], "shape": list(x.shape), "data_offsets": [place, place + x.nbytes]}
        parts.append(bytes_of(x))
        place += x.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *parts]


def _npz(arrays: dict[str, np.ndarray]) -> list[bytes | memoryview]:
    for name, x in arrays.items():
        if x.dtype.kind == "V":  # a dtype that NumPy would write as bytes without a name
            raise located(
                TypeError, f"save: npz has no dtype {dtypes.dtype_name(x.dtype)}, which {name} has; use safetensors"
            )
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return [stream.getbuffer()]


class FileArray:
    """An array of a file, read as a whole."""

    key = None
    is_numpy = False

    def __init__(self, value: np.ndarray):
        self.value, self.shape, self.dtype = value, value.shape, value.dtype

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        return self.value[index]


def read(path: str) -> dict[str, Any]:
    """The arrays of a file, by name."""
    try:
        if path.endswith(".npz"):
            with np.load(path, allow_pickle=False) as found:
                return {name: FileArray(found[name]) for name in found.files}
        with open(path, "rb") as stream:
            data = stream.read()
    except FileNotFoundError:
        raise located(FileNotFoundError, f"load: there is no file {path}") from None
    except (ValueError, EOFError, OSError) as error:
        raise located(ValueError, f"load: {path} cannot be read: {error}") from None
    try:
        return _read_safetensors(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise located(ValueError, f"load: {path} is no safetensors file, or is damaged: {error!r}") from None


def _read_safetensors(data: bytes) -> dict[str, Any]:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _LONGEST_HEADER):
        raise ValueError("its header is cut off")
    header, body = json.loads(data[8 : 8 + length]), memoryview(data)[8 + length :]
    found = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        dtype = np.dtype(dtypes.as_exact_dtype(_DTYPES[about["dtype"]]))
        start, stop = about["data_offsets"]
        if not 0 <= start <= stop <= len(body):
            raise ValueError(f"the bytes of {name} are cut off")
        found[name] = FileArray(np.frombuffer(body[start:stop], dtype).reshape(about["shape"]))
    return found
