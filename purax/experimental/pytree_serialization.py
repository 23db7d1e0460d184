"""Trees of arrays in a folder: `save` and `load`, and the same in the background.

The folder holds `pytreedef.json`, the structure with the type of each leaf, and an array per leaf, which TensorStore
(a package of its own) writes and reads in parts. For checkpoints of programs that go on, use Orbax.
"""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from purax.api.stages import ShapeDtypeStruct
from purax.core import dtypes
from purax.core.source import located
from purax.errors import shown
from purax.experimental.array_serialization import GlobalAsyncCheckpointManager, get_tensorstore_spec
from purax.export.trees import tree_from_json, tree_to_json
from purax.interpreters.arguments import aval_of_argument, to_array
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla.layout import Format

__all__ = ["PyTreeFuture", "load", "load_pytreedef", "nonblocking_load", "nonblocking_save", "save"]

_STRUCTURE = "pytreedef.json"
_worker = ThreadPoolExecutor(1, "purax-pytree-serialization")


class PyTreeFuture:
    """The result of what goes on in the background; it can be awaited.

    Attributes:
        pytree: the types of the arrays, in their structure.
    """

    def __init__(self, pytree: Any, future: Future):
        self.pytree = pytree
        self._future = future

    def result(self) -> Any:
        """Waits for the end; the tree that was read, or None."""
        return self._future.result()

    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def __await__(self) -> Any:
        while not self._future.done():
            yield
        return self._future.result()


def _types(tree: Any) -> Any:
    leaves, structure = tree_flatten(tree)
    return tree_unflatten(structure, [_struct(x) for x in leaves])


def _struct(x: Any) -> ShapeDtypeStruct:
    aval = aval_of_argument(x)
    return ShapeDtypeStruct(aval.shape, aval.dtype)


def save(
    data: Any, directory: str | os.PathLike[str], *, overwrite: bool = True, ts_specs: Any = None
) -> None:
    """Writes a tree of arrays to a folder.

    Args:
        data: the tree.
        directory: the folder, which is made.
        overwrite: whether a folder that is there may be replaced.
        ts_specs: TensorStore's specifications, a tree like `data`.

    >>> import purax.numpy as jnp, purax as px, tempfile
    >>> from purax.experimental import pytree_serialization
    >>> folder = tempfile.mkdtemp()
    >>> tree = {"a": jnp.array([1, 2]), "b": None}
    >>> pytree_serialization.save(tree, folder)                           # doctest: +SKIP
    >>> place = px.sharding.SingleDeviceSharding(px.devices()[0])
    >>> pytree_serialization.load(folder, place)                          # doctest: +SKIP
    {'a': Array([1, 2], dtype=int32), 'b': None}
    """
    directory = os.fspath(directory)
    leaves, structure = tree_flatten(data)
    arrays = [to_array(x) for x in leaves]
    if os.path.isdir(directory) and os.listdir(directory):
        if not overwrite:
            raise located(
                RuntimeError, f"save: {directory} is there already; write overwrite=True to replace it"
            )
        if not os.path.exists(os.path.join(directory, _STRUCTURE)):
            raise located(
                RuntimeError, f"save: {directory} is a folder with other files, which are not deleted"
            )
        shutil.rmtree(directory)
    os.makedirs(directory, exist_ok=True)
    types = [{"shape": list(x.shape), "dtype": dtypes.dtype_name(x.dtype)} for x in arrays]
    _write(arrays, directory, ts_specs, data)
    with open(os.path.join(directory, _STRUCTURE), "w") as file:  # last, so that a folder with it is whole
        json.dump({"tree": tree_to_json(structure), "leaves": types}, file)


def _specs(directory: str, count: int, ts_specs: Any, tree: Any) -> list[Any]:
    default = [get_tensorstore_spec(os.path.join(directory, f"array_{i}")) for i in range(count)]
    if ts_specs is None:
        return default
    given = broadcast_prefix(ts_specs, tree, is_leaf=lambda x: isinstance(x, dict) and "driver" in x)
    return [own if spec is None else spec for own, spec in zip(default, given, strict=True)]


def _write(arrays: list[Any], directory: str, ts_specs: Any, data: Any) -> None:
    manager = GlobalAsyncCheckpointManager()
    manager.serialize(arrays, _specs(directory, len(arrays), ts_specs, data))
    manager.wait_until_finished()


def load_pytreedef(directory: str | os.PathLike[str]) -> Any:
    """The tree that a folder holds, with a `ShapeDtypeStruct` for each array.

    Args:
        directory: the folder.
    """
    path = os.path.join(os.fspath(directory), _STRUCTURE)
    if not os.path.exists(path):
        raise located(ValueError, f"load: {os.fspath(directory)} holds no tree that `save` wrote")
    with open(path) as file:
        content = json.load(file)
    structs = [
        ShapeDtypeStruct(tuple(x["shape"]), dtypes.as_exact_dtype(x["dtype"])) for x in content["leaves"]
    ]
    return tree_unflatten(tree_from_json(content["tree"]), structs)


def load(directory: str | os.PathLike[str], shardings: Any, *, mask: Any = None, ts_specs: Any = None) -> Any:
    """Reads a tree of arrays.

    Args:
        directory: the folder.
        shardings: where the arrays shall lie: a sharding, or a `ShapeDtypeStruct` with one, or a tree of them that is
            a prefix of the tree.
        mask: which arrays are read, a prefix of the tree; the others become None.
        ts_specs: TensorStore's specifications, a tree like the one that is read.
    """
    directory = os.fspath(directory)
    types = load_pytreedef(directory)
    leaves, structure = tree_flatten(types)
    places = [_place(x) for x in broadcast_prefix(shardings, types, is_leaf=lambda x: x is None)]
    wanted = [True] * len(leaves) if mask is None else [bool(x) for x in broadcast_prefix(mask, types)]
    specs = _specs(directory, len(leaves), ts_specs, types)
    chosen = [i for i, flag in enumerate(wanted) if flag]
    manager = GlobalAsyncCheckpointManager()
    shapes, kinds = [leaves[i].shape for i in chosen], [leaves[i].dtype for i in chosen]
    read = manager.deserialize([places[i] for i in chosen], [specs[i] for i in chosen], shapes, kinds)
    found: list[Any] = [None] * len(leaves)
    for i, x in zip(chosen, read, strict=True):
        found[i] = x
    return tree_unflatten(structure, found)


def _place(x: Any) -> Any:
    if isinstance(x, ShapeDtypeStruct):
        x = x.sharding
    if isinstance(x, Format):
        x = x.place()
    if x is None:
        raise located(ValueError, f"load: each array needs a sharding, got {shown(x)}")
    return x


def nonblocking_save(
    data: Any, directory: str | os.PathLike[str], *, overwrite: bool = True, ts_specs: Any = None
) -> PyTreeFuture:
    """`save` in the background.

    Args:
        data: the tree.
        directory: the folder, which is made.
        overwrite: whether a folder that is there may be replaced.
        ts_specs: TensorStore's specifications, a tree like `data`.
    """
    future = _worker.submit(save, data, directory, overwrite=overwrite, ts_specs=ts_specs)
    return PyTreeFuture(_types(data), future)


def nonblocking_load(
    directory: str | os.PathLike[str], shardings: Any, *, mask: Any = None, ts_specs: Any = None
) -> PyTreeFuture:
    """`load` in the background.

    Args:
        directory: the folder.
        shardings: where the arrays shall lie.
        mask: which arrays are read.
        ts_specs: TensorStore's specifications.
    """
    types = load_pytreedef(directory)
    future = _worker.submit(load, directory, shardings, mask=mask, ts_specs=ts_specs)
    return PyTreeFuture(types, future)
