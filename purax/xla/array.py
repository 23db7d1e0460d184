"""`DeviceArray`: a concrete array, with its value on the host, on a device, or on both.

Small eager results are born on the host and move to a device when a compiled program needs them; results of compiled
programs are born on a device and may still be on their way. Either side is made from the other when it is first
asked for, and kept; of a large array, both are kept only where they share their memory. The value never changes:
NumPy only ever sees a read-only view.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.config import config
from purax.core import display, dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import Literal, set_arrays
from purax.core.memories import MemorySpace
from purax.core.primitive import Operators
from purax.core.source import located
from purax.errors import JaxRuntimeError
from purax.sharding import shards
from purax.sharding.shardings import NamedSharding, SingleDeviceSharding, in_memory
from purax.xla import callbacks, client, execute, jaxlib_api
from purax.xla.aligned_memory import SMALL, is_aligned
from purax.xla.layout import format_of

_is_host_platform: dict[Any, bool] = {}


class ArrayClass(type):
    """Of the classes of concrete arrays: to whoever compares the classes of two arrays they are one.

    Where an array lies is no difference in kind, though it is another class here. Tables of classes, which go by
    their hashes, tell them apart.
    """

    def __eq__(cls, other: object) -> bool:
        return cls is other or type(other) is ArrayClass

    __hash__ = type.__hash__


class DeviceArray(Operators, Array, metaclass=ArrayClass):
    """A concrete array, free to be used where it is needed.

    Arguments:
        aval: its type.
        host: its value as a NumPy array that nobody writes to, or None.
        buffer: its value as a buffer of XLA on the default device, or None.

    An array that lies elsewhere, or must stay where it is, is a `PlacedArray`; so `type(x) is DeviceArray` is the test
    for the fast paths.
    """

    __slots__ = ("__weakref__", "_buffer", "_host", "aval")
    _placement: Any = None
    committed = False
    __hash__ = Array.__hash__  # which a class that compares arrays would lose

    def __init__(self, aval: ShapedArray, host: np.ndarray | None = None, buffer: Any = None):
        self.aval = aval
        self._host = host
        self._buffer = buffer

    def _repr_html_(self) -> str | None:
        """What a notebook shows: a picture or a histogram; None, for plain text, if something is in the way."""
        try:
            return self._as_html()
        except Exception:  # whoever looks at an array does not want to hear of the drawing
            return None

    def _as_html(self) -> str | None:
        if self.is_deleted() or not isinstance(self.aval.dtype, np.dtype):
            return None
        title = f"{self.aval.str_short()}, {display.size_text(self.nbytes)}"
        notes = "" if self._placement is None else str(self._placement)
        if self.aval.size > display.MOST_ELEMENTS:
            if self._host is None and not self.is_fully_addressable:
                return display.framed(title, notes)
            step = -(-self.aval.size // display.MOST_ELEMENTS)
            host = self.peek_waiting()
            if host is None:
                return display.framed(title, notes)  # on another device: it is not fetched to be looked at
            notes = f"{notes} every {step}th element".strip()
            values = host.reshape(-1)[::step] if host.flags.c_contiguous else host.flat[::step]
            return display.array_html(title, values, notes)
        return display.array_html(title, self.host_value(), notes)

    # -- where the value is

    def peek(self) -> np.ndarray | None:
        """The value on the host if it is there or costs nothing to get: a finished buffer in host memory.

        A small array is waited for: whether NumPy or XLA works with it, and so the last bit of results, must not depend
        on how far a computation is.
        """
        host = self._host
        if host is None:
            buffer = self._live_buffer()
            if buffer._sharding is _host_sharding() and (
                self.aval.size <= config.host_size_limit or buffer.is_ready()
            ):
                host = self._host = execute.to_numpy(buffer)
        return host

    def peek_waiting(self) -> np.ndarray | None:
        """`peek` for work that the host does with a large array, too: waits for it, and keeps no view.

        A kept view would make a later donation of the array a copy.
        """
        host = self._host
        if host is None:
            buffer = self._live_buffer()
            if buffer._sharding is _host_sharding():
                host = execute.to_numpy(buffer)
                if self.aval.size <= config.host_size_limit:
                    self._host = host
        return host

    def host_value(self) -> np.ndarray:
        """The value on the host; waits for it."""
        host = self._host
        if host is None:
            host = self._host = execute.to_numpy(self._live_buffer())
        return host

    def buffer_on(self, device: Any) -> Any:
        """The value as a buffer on `device`; moves it there if needed."""
        buffer = self._buffer
        if buffer is None:
            host: Any = self._host
            if host is None:
                self._live_buffer()
            buffer = execute.device_put(host, device, copy=False, aval=self.aval)
            if device is client.home_device():
                self._buffer = buffer
                if host.nbytes > SMALL and not is_aligned(host):
                    self._host = None  # XLA had to copy it: one of the two is enough
        elif buffer._sharding._device is not device:
            return execute.copy_to_device(self._live_buffer(), device)
        return buffer

    def private_buffer_on(self, device: Any) -> Any:
        """The value as a buffer on `device` that shares memory with nothing."""
        return execute.device_put(self.host_value(), device, copy=True, aval=self.aval)

    def _live_buffer(self) -> Any:
        buffer = self._buffer
        if buffer is None and self._host is not None:
            return self.buffer_on(client.home_device())
        if buffer is None or buffer.is_deleted():
            for device in getattr(getattr(self, "_placement", None), "device_set", ()):
                client.check_not_abandoned(device)
            raise located(
                RuntimeError,
                f"this {self.aval.str_short()} array has been deleted or donated: its memory was given to "
                "the result of a call with `donate_argnums`/`donate_argnames`, or `delete()` was called. Use that "
                "call's result, or do not donate the argument.",
            )
        return buffer

    @property
    def sharding(self) -> Any:
        """How the array is sharded over devices."""
        if self._placement is not None:
            return self._placement
        if self._buffer is not None:
            return self._buffer._sharding
        return SingleDeviceSharding(client.default_device())

    def devices(self) -> set[Any]:
        """The devices that hold a part of the array."""
        return set(self.sharding.device_set)

    @property
    def device(self) -> Any:
        """The device of an array on one device, the sharding of others."""
        sharding = self.sharding
        return sharding._device if isinstance(sharding, SingleDeviceSharding) else sharding

    def block_until_ready(self) -> DeviceArray:
        """Waits until the value is computed; returns the array."""
        if self._host is None:
            execute.block_until_ready(self._live_buffer())
        return self

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can read the whole array."""
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device that holds a part holds the whole array."""
        return self.sharding.is_fully_replicated

    @property
    def addressable_shards(self) -> list[shards.Shard]:
        """The parts of the array on devices of this process, each with its place and its data."""
        return [shard for shard in self.global_shards if shard.data is not None]

    @property
    def global_shards(self) -> list[shards.Shard]:
        """All parts of the array; those on devices of other processes have no data."""
        sharding = self.sharding
        if isinstance(sharding, NamedSharding):
            part = ShapedArray(sharding.shard_shape(self.shape), self.aval.dtype)
            data = {
                buffer._sharding._device: PlacedArray(
                    part, buffer, SingleDeviceSharding(buffer._sharding._device), True
                )
                for buffer in self._live_buffer()._arrays
            }
        else:
            data = {sharding._device: self}
        return shards.shards_of(sharding, self.shape, data)

    def addressable_data(self, index: int) -> DeviceArray:
        """The data of the shard number `index` of this process."""
        return self.addressable_shards[index].data

    def is_ready(self) -> bool:
        return self._host is not None or self._live_buffer().is_ready()

    def copy_to_host_async(self) -> None:
        """Starts to copy the value to the host, for a later read."""
        if self._host is None:
            self._live_buffer()._copy_single_device_array_to_host_async()

    def delete(self) -> None:
        """Gives the memory back now; the array cannot be used any more."""
        # XLA would wait for the programs that read it, of which one may wait for this callback.
        if self._buffer is not None and not callbacks.inside.depth:
            self._buffer.delete()
        self._buffer = self._host = None

    def is_deleted(self) -> bool:
        return self._host is None and (self._buffer is None or self._buffer.is_deleted())

    @property
    def format(self) -> Any:
        """How the array lies in memory, row by row, and over devices."""
        return format_of(self.aval, self.sharding)

    @property
    def traceback(self) -> None:
        """Where the array was made, which is not kept."""
        return None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory of an array on a GPU, for libraries that read it in place."""
        if client.platform_of(next(iter(self.sharding.device_set))) != "cuda":
            raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers.")
        return self._live_buffer().__cuda_array_interface__

    def on_device_size_in_bytes(self) -> int:
        """How many bytes of a device's memory the array takes."""
        return int(self._live_buffer().on_device_size_in_bytes())

    def unsafe_buffer_pointer(self) -> int:
        """The address of the array's memory, which is valid for as long as the array is; waits for its value.

        It is XLA's own memory, which a result takes over if the array is donated. Each part of an array on several
        devices has its own.
        """
        if len(self.sharding.device_set) > 1:
            raise located(
                JaxRuntimeError,
                f"this {self.aval.str_short()} array has no single address: it lies on "
                f"{len(self.sharding.device_set)} devices. Each part has one: "
                "`x.addressable_shards[i].data.unsafe_buffer_pointer()`.",
            )
        if self._buffer is None and self._host is not None:
            self._buffer, self._host = self.private_buffer_on(client.home_device()), None
        return jaxlib_api.address(execute.block_until_ready(self._live_buffer()))

    # -- Python and NumPy

    def __array__(self, dtype=None, copy=None):
        value = self.host_value()
        if dtype is not None:
            try:
                dtype = np.dtype(dtype)
            except RecursionError:
                raise TypeError(
                    f"{type(dtype).__name__} cannot be a dtype: it is nested too deeply"
                ) from None
        if copy or (dtype is not None and value.dtype != dtype):
            if copy is False:
                raise ValueError(
                    f"a view of a {value.dtype} array as {np.dtype(dtype)} needs a copy; use copy=None"
                )
            return np.array(value, dtype)
        return read_only(value)

    def __buffer__(self, flags):
        try:
            return memoryview(read_only(self.host_value()))
        except Exception as error:  # NumPy, if it is who asks, hides it and asks `__array__` next
            callbacks.keep_late(error)
            raise

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        value = self._host if self._buffer is None else None
        if value is None and self.device.platform == "cpu":
            value = self.host_value()
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(
                f"this array is on the device {self.__dlpack_device__()} of DLPack, and {tuple(dl_device)} is asked "
                "for; move it with `purax.device_put` first"
            )
        if self.aval.dtype.itemsize * 8 != dtypes.itemsize_bits(self.aval.dtype):
            raise BufferError(
                f"DLPack has no arrays of {self.aval.dtype} with one number in a byte, which others could read; send "
                '`x.astype("int8")` or `x.astype("float32")`'
            )
        if value is not None and value.dtype.isbuiltin != 1:  # NumPy does not export bfloat16 and its like
            return jaxlib_api.to_dlpack(self.copy()._live_buffer() if copy else self._live_buffer())
        if value is not None:
            if copy or not value.flags.c_contiguous:
                value = np.array(value, order="C")
            # Consumers older than DLPack 1.0 cannot be told that memory is read-only; they get a writable view.
            return jaxlib_api.as_writable_view(value).__dlpack__(stream=stream, max_version=max_version)
        return jaxlib_api.to_dlpack(self._live_buffer(), stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.device
        kinds = {"cpu": 1, "cuda": 2, "gpu": 2, "rocm": 10}
        if device.platform not in kinds:
            raise BufferError(f"DLPack knows no device of platform {device.platform!r}")
        return kinds[device.platform], 0 if device.platform == "cpu" else device.local_hardware_id

    def __arrow_c_array__(self, requested_schema=None):
        """Columns of Arrow, Polars and whoever else takes Arrow's arrays; made by pyarrow of the host's memory."""
        return self.__arrow_array__().__arrow_c_array__(requested_schema)

    def __arrow_array__(self, type=None):
        if self.ndim != 1:
            raise located(
                ValueError,
                f"a column has one axis, this array is {self.aval.str_short()}; take its columns, or `x.ravel()`",
            )
        import pyarrow

        return pyarrow.array(self.host_value(), type=type)

    def __bool__(self):
        if self.aval.size != 1:
            raise ValueError(
                f"the truth value of an array with {self.aval.size} elements (shape {self.aval.shape}) is ambiguous; "
                "use x.any() or x.all()"
            )
        return bool(self.host_value())

    def _scalar(self, kind: str) -> Any:
        if self.aval.shape != ():
            raise TypeError(
                f"{kind}() needs a scalar, got an array of shape {self.aval.shape}; index it: x[0], x.item()"
            )
        return self.host_value()

    def __int__(self):
        return int(self._scalar("int"))

    def __float__(self):
        return float(self._scalar("float"))

    def __complex__(self):
        return complex(self._scalar("complex"))

    def __index__(self):
        if not np.issubdtype(self.aval.dtype, np.integer) or self.aval.shape != ():
            raise TypeError(f"only an integer scalar can be an index, got {self.aval.str_short()}")
        return int(self.host_value())

    def item(self, *index):
        """The value of a one-element array (or of the element at `index`) as a Python number."""
        return self.host_value().item(*index)

    def tolist(self):
        """The values as nested lists of Python numbers."""
        return self.host_value().tolist()

    def tobytes(self, order="C") -> bytes:
        return self.host_value().tobytes(order)

    def __reduce__(self):
        return _restore, (np.array(self.host_value()), self.aval.weak_type)

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        return self.copy()

    def copy(self) -> DeviceArray:
        """A new array with the same value, in memory of its own."""
        if self._buffer is not None:
            buffer = execute.copy_to_device(self._live_buffer(), self._buffer._sharding._device, copy=True)
            return on_device(self.aval, buffer, self._placement, self.committed)
        return DeviceArray(self.aval, np.array(self.host_value()))

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted {self.aval.str_short()} array>"
        value = self.host_value()
        weak = ", weak_type=True" if self.aval.weak_type else ""
        suffix = f"dtype={dtypes.dtype_name(self.aval.dtype)}{weak})"
        if value.size == 0:
            return f"Array([], shape={value.shape}, {suffix}"
        text = f"Array({np.array2string(value, prefix='Array(', suffix=',', separator=', ')},"
        fits = len(text) - text.rfind("\n") + len(suffix) <= np.get_printoptions()["linewidth"]
        return f"{text}{' ' if fits else chr(10) + ' ' * 6}{suffix}"  # as NumPy breaks the line

    def __str__(self) -> str:
        return str(self.host_value())

    def __format__(self, specification: str) -> str:
        value = self.host_value()
        return format(value[()] if value.ndim == 0 else value, specification)


class PlacedArray(DeviceArray):
    """An array that lies on another device than the default one, or on several, or is committed to where it lies.

    Arguments:
        aval: its type.
        buffer: its value as a buffer of XLA.
        placement: the sharding that says where it lies.
        committed: whether it stays there; an uncommitted array moves to where it is needed.
    """

    __slots__ = ("_placement", "committed")

    def __init__(self, aval: ShapedArray, buffer: Any, placement: Any, committed: bool):
        self.aval = aval
        self._host = None
        self._buffer = buffer
        self._placement = placement
        self.committed = committed

    def peek(self) -> None:
        return None

    peek_waiting = peek

    def host_value(self) -> np.ndarray:
        if self._host is None and type(self._placement) is NamedSharding:
            self._host = shards.to_numpy(self._live_buffer())
        return super().host_value()

    def buffer_on(self, device: Any) -> Any:
        if type(self._placement) is NamedSharding:
            return execute.device_put(self.host_value(), device, copy=False, aval=self.aval)
        return super().buffer_on(device)

    def copy_to_host_async(self) -> None:
        if type(self._placement) is not NamedSharding:
            super().copy_to_host_async()

    def copy(self) -> DeviceArray:
        if type(self._placement) is NamedSharding:
            return PlacedArray(
                self.aval,
                jaxlib_api.copy_to(self._live_buffer(), self._placement, True),
                self._placement,
                self.committed,
            )
        return super().copy()


def on_device(aval: ShapedArray, buffer: Any, placement: Any, committed: bool) -> DeviceArray:
    """A result of XLA as an array; `placement` is None for the default device."""
    if aval.memory_space is not MemorySpace.Device:
        placement = in_memory(placement or SingleDeviceSharding(client.home_device()), aval.memory_space)
    if placement is None:
        return DeviceArray(aval, None, buffer)
    return PlacedArray(aval, buffer, placement, committed)


_cpu_sharding = None


def _host_sharding():
    """The sharding of the default CPU device if that is where uncommitted arrays go, else None."""
    global _cpu_sharding
    if _cpu_sharding is None:
        device = client.home_device()
        if device.platform != "cpu":
            return None
        _cpu_sharding = SingleDeviceSharding(device)
    return _cpu_sharding


def forget_home() -> None:
    """Forgets which device arrays are at home on: there are others."""
    global _cpu_sharding
    _cpu_sharding = None


def read_only(value: np.ndarray) -> np.ndarray:
    """A view of `value` that cannot be written to."""
    if value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def from_numpy(value: np.ndarray, weak_type: bool = False) -> DeviceArray:
    """An array with the value of `value`, which must not be written to afterwards."""
    return DeviceArray(ShapedArray(value.shape, value.dtype, weak_type), value)


_constants: dict[Any, DeviceArray] = {}
_constant_by_id: dict[int, DeviceArray] = {}


def constant(number: Any, dtype: Any, weak_type: bool = False) -> DeviceArray:
    """A number that a rule of purax itself writes, as a scalar array; the same array for the same number.

    In a program it is a literal (`is_constant` tells it from a scalar that the user captured).
    """
    # 0.0 and −0.0 would be equal keys, as would 1 + 0j and 1 − 0j, and NaN would never be found again, but for their
    # texts.
    plain = number and number == number and not isinstance(number, complex | np.complexfloating)
    name = number if plain else repr(number)
    key = (name, type(number), dtype, weak_type)
    array = _constants.get(key)
    if array is None:
        value = np.array(number, dtype)
        array = DeviceArray(ShapedArray((), value.dtype, weak_type), value)
        if len(_constants) >= 4096:
            _constants.clear()
            _constant_by_id.clear()
        _constants[key] = array
        _constant_by_id[id(array)] = array
    return array


def is_constant(x: Any) -> bool:
    """Whether `x` is a scalar made by `constant`."""
    return x is not None and _constant_by_id.get(id(x)) is x


def as_operand(x: Any) -> Any:
    """An operand as a rule sees it: an array. Numbers are constants; NumPy's arrays are copied, since they change."""
    if isinstance(x, Array):
        return x
    if isinstance(x, np.ndarray) and x.ndim:
        return from_numpy(x.copy())
    if isinstance(x, _NUMBERS):
        aval = aval_of(x)
        return constant(x[()] if isinstance(x, np.ndarray) else x, aval.dtype, aval.weak_type)
    return x


_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)


def array_of_literal(literal: Literal) -> Any:
    """The value of a literal as the `constant` of its type."""
    value, aval = literal.val, literal.aval
    if isinstance(value, Array) or aval.ndim or dtypes.is_extended(aval.dtype):
        return value
    if not is_constant(literal.made):
        number = value[()] if isinstance(value, np.ndarray) else value
        literal.made = constant(number, aval.dtype, aval.weak_type)
    return literal.made


set_arrays(array_of_literal)


def _restore(value: np.ndarray, weak_type: bool) -> DeviceArray:
    return from_numpy(value, weak_type)
