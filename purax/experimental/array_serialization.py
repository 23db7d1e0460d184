"""Arrays in files, written by TensorStore while the program goes on, and read as parts on devices.

TensorStore, a package of its own, is imported at first use. Orbax builds on it too and does more: names, versions,
atomic replacement. Each device's part of an array is written once, by the process that has it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes as dtype_rules
from purax.core.array import Array
from purax.errors import shown
from purax.experimental.multihost_utils import sync_global_devices
from purax.interpreters.arguments import to_array
from purax.sharding.global_arrays import make_array_from_callback
from purax.xla import client

__all__ = ["GlobalAsyncCheckpointManager", "get_tensorstore_spec"]


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str],
    *,
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr: Array | None = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """What tells TensorStore where an array is, or shall be.

    Args:
        ckpt_path: a folder, or "gs://bucket/path".
        ocdbt: whether the arrays of the folder above share a database.
        process_idx: in a shared database, the part that a process writes.
        arr: an array to be stored there; its type and shape become part of the answer.
        driver: the format of the array.

    >>> from purax.experimental.array_serialization import get_tensorstore_spec
    >>> get_tensorstore_spec("/tmp/weights")
    {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/tmp/weights'}}
    """
    folder, name = os.path.split(os.fspath(ckpt_path).rstrip("/"))
    if ocdbt:
        folder = folder if process_idx is None else f"{folder}/process_{process_idx}"
        store: dict[str, Any] = {"driver": "ocdbt", "base": _store(folder), "path": name}
    else:
        store = _store(os.fspath(ckpt_path))
    spec: dict[str, Any] = {"driver": driver, "kvstore": store}
    if arr is not None:
        if not (hasattr(arr, "dtype") and hasattr(arr, "shape")):
            raise TypeError(f"get_tensorstore_spec: arr must be an array, got {shown(arr)}")
        spec |= {"dtype": dtype_rules.dtype_name(arr.dtype), "schema": {"domain": {"shape": list(arr.shape)}}}
    return spec


def _store(path: str) -> dict[str, str]:
    if path.startswith("gs://"):
        bucket, _, rest = path.removeprefix("gs://").partition("/")
        return {"driver": "gcs", "bucket": bucket, "path": rest}
    return {"driver": "file", "path": path}


class GlobalAsyncCheckpointManager:
    """Writes arrays to files in the background, and reads them.

    In a group of several processes, writing ends before `serialize` returns, so that all can meet.

    Args:
        timeout_secs: how long writing may take.

    >>> import tempfile, purax as px, purax.numpy as jnp
    >>> from purax.experimental.array_serialization import GlobalAsyncCheckpointManager
    >>> manager = GlobalAsyncCheckpointManager()
    >>> folder = tempfile.mkdtemp()
    >>> manager.serialize_with_paths([jnp.arange(3)], [f"{folder}/x"])      # doctest: +SKIP
    >>> manager.wait_until_finished()
    >>> place = px.sharding.SingleDeviceSharding(px.devices()[0])
    >>> manager.deserialize_with_paths([place], [f"{folder}/x"])            # doctest: +SKIP
    [Array([0, 1, 2], dtype=int32)]
    """

    def __init__(self, timeout_secs: float = 300):
        self._timeout = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def serialize(
        self,
        arrays: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """Starts writing arrays, after what was started before is done.

        Args:
            arrays: what to write.
            tensorstore_specs: where to, one for each array.
            on_commit_callback: called when all is written.
            transaction: of TensorStore, which the caller commits.
        """
        import tensorstore

        self.wait_until_finished()
        writes = []
        for array, spec in zip(map(to_array, arrays), tensorstore_specs, strict=True):
            shape = array.sharding.shard_shape(array.shape)
            store = tensorstore.open(
                tensorstore.Spec(
                    {key: value for key, value in spec.items() if key not in ("dtype", "schema")}
                ),
                create=True,
                delete_existing=client.process_count() == 1,
                open=client.process_count() > 1,
                dtype=tensorstore.dtype(array.dtype),
                shape=array.shape,
                chunk_layout=tensorstore.ChunkLayout(chunk_shape=[max(size, 1) for size in shape]),
                transaction=transaction,
            ).result()
            for shard in array.addressable_shards:
                if shard.replica_id == 0:
                    writes.append(store[shard.index].write(np.asarray(shard.data)))

        def finish() -> None:
            try:
                if transaction is None:
                    for write in writes:
                        write.result(timeout=self._timeout)
                sync_global_devices("GlobalAsyncCheckpointManager.serialize")
                if on_commit_callback is not None:
                    on_commit_callback()
            except BaseException as error:
                self._error = error

        if client.process_count() > 1:
            finish()
            self.check_for_errors()
        else:
            self._thread = threading.Thread(target=finish, name="purax-array-serialization")
            self._thread.start()

    def serialize_with_paths(
        self,
        arrays: Sequence[Any],
        paths: Sequence[str],
        *,
        on_commit_callback: Callable[[], None] | None = None,
        transaction: Any = None,
    ) -> None:
        """`serialize` to folders."""
        specs = [get_tensorstore_spec(path) for path in paths]
        self.serialize(arrays, specs, on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(
        self,
        shardings: Sequence[Any],
        tensorstore_specs: Sequence[dict[str, Any]],
        global_shapes: Sequence[Sequence[int]] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """Reads arrays; each device gets its part.

        Args:
            shardings: how they are sharded over devices.
            tensorstore_specs: where they are.
            global_shapes: the shapes that they get: shorter axes are cut, longer ones filled with zeros.
            dtypes: what they are converted to.
            concurrent_gb: accepted, without effect: parts are read one after the other.
        """
        import tensorstore

        self.wait_until_finished()
        results: list[Array] = []
        for i, (sharding, spec) in enumerate(zip(shardings, tensorstore_specs, strict=True)):
            store = tensorstore.open(tensorstore.Spec(spec), open=True).result()
            shape = tuple(store.shape if global_shapes is None else global_shapes[i])
            dtype = np.dtype(store.dtype.numpy_dtype if dtypes is None or dtypes[i] is None else dtypes[i])
            read = _Part(store, shape, dtype)
            results.append(make_array_from_callback(shape, sharding, read, dtype))
        return results

    def deserialize_with_paths(
        self,
        shardings: Sequence[Any],
        paths: Sequence[str],
        global_shapes: Sequence[Sequence[int]] | None = None,
        dtypes: Sequence[Any] | None = None,
        concurrent_gb: int = 32,
    ) -> list[Array]:
        """`deserialize` from folders."""
        specs = [get_tensorstore_spec(path) for path in paths]
        return self.deserialize(shardings, specs, global_shapes, dtypes, concurrent_gb)

    def wait_until_finished(self) -> None:
        """Waits until all is written, and raises what went wrong."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()

    def check_for_errors(self) -> None:
        """Raises what went wrong so far, without waiting."""
        error, self._error = self._error, None
        if error is not None:
            raise error


class _Part:
    """Reads the part of a stored array that an index of an array of another shape and dtype asks for."""

    def __init__(self, store: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.store, self.shape, self.dtype = store, shape, dtype

    def __call__(self, index: tuple[slice, ...]) -> np.ndarray:
        bounds = [part.indices(size)[:2] for part, size in zip(index, self.shape, strict=True)]
        result = np.zeros([stop - start for start, stop in bounds], self.dtype)
        stored = [
            (start, min(stop, size)) for (start, stop), size in zip(bounds, self.store.shape, strict=True)
        ]
        if all(start < stop for start, stop in stored):
            there = tuple(slice(start, stop) for start, stop in stored)
            here = tuple(slice(0, stop - start) for start, stop in stored)
            result[here] = self.store[there].read().result()
        return result
