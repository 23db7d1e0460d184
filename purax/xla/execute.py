"""Running compiled programs and moving values between NumPy and devices.

An `Executable` is made by `purax.xla.compiler`. Calls return at once: the results are buffers that the
device fills later, and `to_numpy` or `block_until_ready` wait for them. A buffer's memory never changes while
anybody can read it: donating a buffer deletes it, and memory that a NumPy array still shows is not reused.
"""

import contextlib
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.errors import JaxRuntimeError, OutOfMemoryError
from purax.sharding.shardings import single_device_sharding
from purax.xla import callbacks, interruptible_calls, jaxlib_api, living_arrays, long_programs
from purax.xla.processes import group

Buffer = jaxlib_api.Buffer
_put = jaxlib_api.put
is_pending = interruptible_calls.is_pending


class BufferType:
    """The type of a buffer that was made without an aval: what XLA asks of one, and no more."""

    __slots__ = ("dtype", "shape", "weak_type")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype, weak_type: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


class Executable:
    """A compiled and loaded program.

    Arguments:
        loaded: XLA's executable.
        out_avals: per result an object with `shape`, `dtype`, `weak_type`; it becomes the buffer's `aval`.
        out_shardings: per result its sharding.
        devices: the devices it runs on.
        donated: the positions of the arguments whose memory the program may take over.
        pace: how long it may run, one of those of `long_programs`.

    >>> from purax.xla import client, compiler
    >>> text = '''func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    ...   %y = stablehlo.add %x, %x : tensor<3xf32>
    ...   return %y : tensor<3xf32> }'''
    >>> x = np.arange(3, dtype=np.float32)
    >>> device = client.devices("cpu")[0]
    >>> double = compiler.compile_program(text, [BufferType((3,), x.dtype)], (device,))
    >>> to_numpy(double([device_put(x, device)])[0])
    array([0., 2., 4.], dtype=float32)
    """

    __slots__ = (
        "__weakref__",
        "execute",
        "handlers",
        "_loaded",
        "_processes",
        "devices",
        "donated",
        "out_avals",
        "out_shardings",
    )

    def __init__(
        self,
        loaded: Any,
        out_avals: Sequence[Any],
        out_shardings: Sequence[Any],
        devices: tuple[Any, ...],
        donated: Sequence[int] = (),
        pace: str = long_programs.SHORT,
    ) -> None:
        self._loaded = loaded
        self.execute: Any = long_programs.starter(loaded.execute_sharded, pace)
        self._processes = ""
        if len(devices) > 1:
            processes = group.spans_processes(devices)
            is_cpu = devices[0].platform == "cpu"
            if (is_cpu or processes) and _communicates(loaded.get_hlo_text()):
                self._processes = ",".join(map(str, processes))
                self.execute = self._execute_in_turn if is_cpu else self._execute_together
        self.handlers = list(map(jaxlib_api.make_result_handler, out_avals, out_shardings))
        self.out_avals = tuple(out_avals)
        self.out_shardings = tuple(out_shardings)
        self.devices = devices
        self.donated = tuple(donated)

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        """Start the program on `buffers`, one per argument; return one buffer per result, in order.

        XLA checks the number and the bytes of the arguments, not their dtypes: the caller must.
        """
        try:
            results = self.execute(buffers).consume_with_handlers(self.handlers)
        except (jaxlib_api.EngineError, ValueError) as error:
            raise self.explain(error, buffers) from None
        if self.donated:
            # XLA does not delete a donated buffer that a NumPy view still shows.
            for position in self.donated:
                buffers[position].delete()
        return results

    def _execute_in_turn(self, buffers: Sequence[Any]) -> Any:
        """Starts a program in which CPU devices wait for each other, after the one before is done.

        Each waiting device holds a thread. The threads suffice for one such program; two at a time may wait forever.
        """
        return self._start_in_turn(buffers)[0]

    def _start_in_turn(self, buffers: Sequence[Any]) -> tuple[Any, Any]:
        with _turn.lock:
            _turn.wait()
            if self._processes:
                launch = group.current.count_launch(self._processes, self._loaded)
                # XLA runs small programs in the thread that calls them, and this one may wait for the dead.
                started = interruptible_calls.run_apart(_start_with_token, self._loaded, buffers)
                token = launch.token = _turn.token = started.consume_token()
            else:
                started = self._loaded.execute_sharded(buffers, with_tokens=True)
                token = _turn.token = started.consume_token()
        long_programs.add(token)
        return started, token

    def _execute_together(self, buffers: Sequence[Any]) -> Any:
        """Starts a program in which devices of several processes wait for each other."""
        launch = group.current.count_launch(self._processes, self._loaded)
        started = self._loaded.execute_sharded(buffers, with_tokens=True)
        launch.token = started.consume_token()
        return started

    def explain(self, error: Exception, buffers: Sequence[Any]) -> BaseException:
        """What the user should read of an error of `execute`."""
        if callbacks.is_reported(error):
            return error
        return (
            _explain_call(error, buffers)
            if isinstance(error, (jaxlib_api.EngineError, ValueError))
            else error
        )

    def cost_analysis(self) -> dict[str, Any]:
        """The compiler's estimate of the work of one call: "flops", "bytes accessed", and others."""
        return self._loaded.cost_analysis()

    def memory_analysis(self) -> Any:
        """The bytes of code, arguments, results, aliased and temporary memory, as attributes."""
        return self._loaded.get_compiled_memory_stats()

    def hlo_text(self) -> str:
        """The optimised program, as the compiler's own text."""
        return self._loaded.get_hlo_text()

    def serialize(self) -> bytes:
        """The compiled program as bytes that the same jaxlib build loads on the same kind of device."""
        return self._loaded.serialize()

    def __repr__(self) -> str:
        names = ", ".join(str(device) for device in self.devices[:4])
        more = ", ..." if len(self.devices) > 4 else ""
        return f"<Executable with {len(self.out_avals)} results on {names}{more}>"


def _start_with_token(loaded: Any, buffers: Sequence[Any]) -> Any:
    return loaded.execute_sharded(buffers, with_tokens=True)


class _Turn:
    """Of programs whose CPU devices communicate: the token of the last one that was started."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.token: Any = None

    def wait(self) -> None:
        """Waits until the last program is done; if it failed, its results say so, and the next may run."""
        if self.token is not None:
            with contextlib.suppress(jaxlib_api.EngineError, ValueError):
                interruptible_calls.wait(self.token)
        self.token = None


_turn = _Turn()


def wait_for_programs() -> None:
    """Waits for programs in which CPU devices communicate: a process must not end while others need its part."""
    with _turn.lock:
        _turn.wait()


def abandon_programs() -> None:
    """Waits no more for programs over a group that lost a member: they may never end."""
    global _turn
    _turn = _Turn()


def _communicates(text: str) -> bool:
    return any(f" {operation}" in text for operation in _COLLECTIVES)


_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "all-to-all",
    "collective-permute",
    "reduce-scatter",
    "collective-broadcast",
)


class EffectfulExecutable(Executable):
    """A program that calls Python for its effects: it leaves a token to wait for, since it may have no results.

    Arguments:
        ordered: whether its effects come after those of all earlier programs with ordered effects.
    """

    __slots__ = ("_waits_its_turn", "ordered")

    def __init__(self, *arguments: Any, ordered: bool) -> None:
        super().__init__(*arguments)
        self.ordered = ordered
        self._waits_its_turn = self.execute == self._execute_in_turn
        self.execute = self._execute_with_token

    def _execute_with_token(self, buffers: Sequence[Any]) -> Any:
        if self.ordered:
            callbacks.wait_for_ordered()
        if self._waits_its_turn:
            started, token = self._start_in_turn(buffers)
        else:
            started = self._loaded.execute_sharded(buffers, with_tokens=True)
            token = started.consume_token()
            if self._processes:
                group.current.count_launch(self._processes, self._loaded).token = token
        long_programs.add(token)
        callbacks.add_token(token, self.ordered)
        return started


def engine_failure(error: Exception) -> BaseException:
    """XLA's error as one of purax's, without XLA's own source locations.

    Where a Python callback failed it is the exception that the callback raised.
    """
    original = callbacks.original_failure(error)
    if original is not None:
        callbacks.mark_reported(original)
        return original
    lost = group.explain(error)
    if lost is not None:
        return lost
    message = str(error).partition("\n=== Source Location Trace")[0].rstrip()
    if "calling callback" in message and message.splitlines()[-1].startswith("KeyboardInterrupt"):
        return KeyboardInterrupt()  # it came before, or after, anything of ours could take note of it
    if "Out of memory" in message:
        return OutOfMemoryError(message + living_arrays.description())
    return JaxRuntimeError(message)


def _explain_call(error: Exception, buffers: Sequence[Any]) -> BaseException:
    for position, buffer in enumerate(buffers):
        if buffer.is_deleted():
            return _is_deleted(f"argument {position}", buffer)
    return engine_failure(error)


def _is_deleted(what: str, buffer: Any) -> JaxRuntimeError:
    aval = buffer.aval
    return JaxRuntimeError(
        f"{what} ({aval.dtype}{list(aval.shape)}) was deleted, or donated to an earlier call; "
        "use the result of that call instead, or do not donate it"
    )


def _explain_read(error: Exception, buffer: Any) -> BaseException:
    return _is_deleted("the array", buffer) if buffer.is_deleted() else engine_failure(error)


def device_put(array: np.ndarray, device: Any, copy: bool = True, aval: Any = None) -> Any:
    """Move a NumPy array to a device.

    Arguments:
        array: the array, of a dtype that XLA knows, with any strides and byte order.
        device: the device.
        copy: True: the buffer never shares memory with `array`. False: it may, and `array` must never change
            afterwards; XLA keeps it alive.
        aval: an object with `shape`, `dtype`, `weak_type` to carry as `buffer.aval`; by default the array's.

    Returns:
        A buffer.

    >>> from purax.xla import client
    >>> to_numpy(device_put(np.arange(3), client.devices("cpu")[0]))
    array([0, 1, 2])
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.dtype.itemsize:  # tangents of integers, which booleans represent
        array, aval = np.zeros(array.shape, np.bool_), None
    if aval is None:
        aval = BufferType(array.shape, array.dtype)
    try:
        return _put(aval, single_device_sharding(device), array, device, copy)
    except jaxlib_api.EngineError as error:
        if "Unknown NumPy dtype" not in str(error):
            raise engine_failure(error) from None
    raise TypeError(f"an array of dtype {array.dtype} cannot go to a device: XLA has no such type")


def to_numpy(buffer: Any) -> np.ndarray:
    """The value of a buffer as a read-only array; waits for it.

    On CPU it is the buffer's own memory, which stays alive and unchanged as long as the array does, even if
    the buffer is deleted or donated. Dtypes narrower than a byte, and other devices, are copied.
    """
    try:
        if is_pending(buffer):
            _wait(buffer)
        value = jaxlib_api.to_numpy(buffer)
    except jaxlib_api.EngineError as error:
        raise _explain_read(error, buffer) from None
    if callbacks.late:
        callbacks.raise_late()
    return value


def is_ready(buffer: Any) -> bool:
    """Whether the value is there, so that reading it would not wait."""
    return buffer.is_ready()


def block_until_ready(buffers: Any) -> Any:
    """Wait for one buffer or a list of them and return the argument; raise if a computation failed."""
    try:
        if isinstance(buffers, Buffer):
            if is_pending(buffers):
                _wait(buffers)
            buffers.block_until_ready()
        else:
            buffers = list(buffers)
            for buffer in buffers:
                if is_pending(buffer):
                    _wait(buffer)
            jaxlib_api.block_until_ready_many(buffers)
    except jaxlib_api.EngineError as error:
        for buffer in (buffers,) if isinstance(buffers, Buffer) else buffers:
            if buffer.is_deleted():
                raise _is_deleted("the array", buffer) from None
        raise engine_failure(error) from None
    if callbacks.late:
        callbacks.raise_late()
    return buffers


def _wait(buffer: Any) -> None:
    """Waits for a buffer that is not ready so that an interrupt is answered, which XLA's wait is not."""
    if callbacks.inside.depth:
        callbacks.wait_inside(lambda: not is_pending(buffer), "an array")
    elif buffer.platform() == "cpu":
        long_programs.wait(buffer)
    else:
        # A device that computes elsewhere is asked for a moment first: waking a thread takes longer (10 µs).
        end = time.perf_counter() + 200e-6
        while time.perf_counter() < end:
            if not is_pending(buffer):
                return
        interruptible_calls.wait(buffer)


def delete(buffer: Any) -> None:
    """Give back the memory of a buffer now; using it afterwards raises. Twice is once."""
    buffer.delete()


def copy_to_device(buffer: Any, device: Any, copy: bool = False) -> Any:
    """Move a buffer to another device: directly within a platform, through the host otherwise.

    Arguments:
        buffer: a buffer on one device.
        device: where to.
        copy: False returns a buffer of the same memory if it is on `device` already, and deleting or donating
            one of the two then deletes both; True copies in any case.

    Returns:
        A buffer on `device` with the same aval.
    """
    sharding = single_device_sharding(device)
    if buffer._sharding.device_set == sharding.device_set:
        sharding = buffer._sharding  # in the memory that it is in
    try:
        if buffer._sharding._device.client is device.client:
            return jaxlib_api.copy_to(buffer, sharding, copy)
        return jaxlib_api.put(buffer.aval, sharding, jaxlib_api.to_numpy(buffer), device, copy)
    except jaxlib_api.EngineError as error:
        raise _explain_read(error, buffer) from None
