"""Where the time goes: traces of what the program and XLA did, for TensorBoard (XProf) and Perfetto.

`trace` writes a folder `plugins/profile/<time>` with what TensorBoard reads and a `*.trace.json.gz` that
https://ui.perfetto.dev and chrome://tracing open. The names of `named_scope` and of the annotations here stand in it.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import gzip
import http.server
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from purax.core.source import located
from purax.xla import client, jaxlib_api

P = ParamSpec("P")
R = TypeVar("R")
_PERFETTO_PORT = 9001


class _State:
    """The trace that is being taken, and the server that runs; there is one of each in a process."""

    lock = threading.Lock()
    session: Any = None
    folder = ""
    perfetto_trace = False
    perfetto_link = False
    server: Any = None


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Starts to record what the program and XLA do, until `stop_trace`.

    Args:
        log_dir: the folder that the trace is written to; TensorBoard takes it as `--logdir`.
        create_perfetto_link: whether `stop_trace` prints a link that shows the trace in Perfetto, and waits until
            it has been opened.
        create_perfetto_trace: whether a file `perfetto_trace.json.gz` is written beside, which Perfetto opens.
        profiler_options: a `ProfileOptions` object.

    >>> import tempfile, purax as px
    >>> folder = tempfile.mkdtemp()
    >>> px.profiler.start_trace(folder)
    >>> y = px.numpy.ones(3) + 1
    >>> px.profiler.stop_trace()
    """
    with _State.lock:
        if _State.session is not None:
            raise located(
                RuntimeError,
                f"a trace is being taken already, to {_State.folder}; one at a time: call "
                "`purax.profiler.stop_trace()`",
            )
        client.default_device()  # what is profiled must be there
        kind = jaxlib_api.profiler().ProfilerSession
        _State.session = kind() if profiler_options is None else kind(profiler_options)
        _State.folder = os.fspath(log_dir)
        _State.perfetto_link = create_perfetto_link
        _State.perfetto_trace = create_perfetto_trace or create_perfetto_link


def stop_trace() -> None:
    """Ends the trace that `start_trace` began, and writes it."""
    with _State.lock:
        if _State.session is None:
            raise located(
                RuntimeError, "no trace is being taken; call `purax.profiler.start_trace(folder)` first"
            )
        session, _State.session = _State.session, None
        session.stop_and_export(_State.folder)
        if _State.perfetto_trace:
            path = _write_perfetto_trace(_State.folder)
            if _State.perfetto_link:
                _serve_once(path)


@contextlib.contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """Records what the program and XLA do in the `with` block; the arguments are those of `start_trace`.

    Wait for results inside of the block (`x.block_until_ready()`), or their computation may come too late for it.

    >>> import tempfile, purax as px
    >>> with px.profiler.trace(tempfile.mkdtemp()):
    ...     y = px.jit(lambda x: x + 1)(px.numpy.ones(3)).block_until_ready()
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def _write_perfetto_trace(folder: str) -> str:
    """Puts the newest trace under the name that Perfetto users look for; returns its path."""
    found = glob.glob(os.path.join(glob.escape(folder), "plugins", "profile", "*", "*.trace.json.gz"))
    if not found:
        raise FileNotFoundError(f"the profiler wrote no trace events to {folder}")
    newest = max(found, key=os.path.getmtime)
    path = os.path.join(os.path.dirname(newest), "perfetto_trace.json.gz")
    with gzip.open(newest, "rb") as read, gzip.open(path, "wb") as written:
        shutil.copyfileobj(read, written)
    return path


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Gives one file to Perfetto's page, which may only read what allows it."""

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def do_GET(self) -> None:
        self.server.was_read = True  # type: ignore[attr-defined]
        super().do_GET()

    def do_POST(self) -> None:
        self.send_error(404)

    def log_message(self, *args: Any) -> None:
        pass


def _serve_once(path: str) -> None:
    """Prints a link to Perfetto that shows the file, and waits until it has been fetched."""
    folder, name = os.path.split(os.path.abspath(path))
    handler = functools.partial(_Handler, directory=folder)
    http.server.HTTPServer.allow_reuse_address = True
    with http.server.HTTPServer(("127.0.0.1", _PERFETTO_PORT), handler) as server:
        server.was_read = False  # type: ignore[attr-defined]
        print(f"Open https://ui.perfetto.dev/#!/?url=http://127.0.0.1:{server.server_port}/{name}")
        while not server.was_read:  # type: ignore[attr-defined]
            server.handle_request()


class TraceAnnotation:
    """Names what happens in a `with` block, in the trace.

    Args:
        name: of the block.
        **kwargs: numbers and strings to note with it.

    >>> import purax as px
    >>> with px.profiler.TraceAnnotation("load", batch=3):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any):
        self._annotation = jaxlib_api.profiler().TraceMe(name, **kwargs)

    def set_metadata(self, **kwargs: Any) -> None:
        """Notes numbers and strings with the block."""
        self._annotation.set_metadata(**kwargs)

    def __enter__(self) -> TraceAnnotation:
        self._annotation.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._annotation.__exit__(*error)


class StepTraceAnnotation(TraceAnnotation):
    """Names one step of training in the trace, by which TensorBoard divides it.

    Args:
        name: of the steps, such as "train".
        **kwargs: give `step_num`, the number of the step.

    >>> import purax as px
    >>> with px.profiler.StepTraceAnnotation("train", step_num=1):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any):
        super().__init__(name, _r=1, **kwargs)


def annotate_function(
    func: Callable[P, R], name: str | None = None, **decorator_kwargs: Any
) -> Callable[P, R]:
    """A function whose calls have a name in the trace.

    Args:
        func: the function.
        name: instead of its own.
        **decorator_kwargs: numbers and strings to note with each call.

    >>> import purax as px
    >>> px.profiler.annotate_function(lambda x: x + 1, name="increment")(1)
    2
    """
    label: Any = name or getattr(func, "__qualname__", getattr(func, "__name__", type(func).__name__))

    @functools.wraps(func)
    def annotated(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Starts a server that TensorBoard takes traces from, with the button "Capture profile".

    Args:
        port: to listen on.
        requires_backend: whether the devices are started first, so that they can be profiled.

    Returns:
        The server; it runs until `stop_server`.
    """
    with _State.lock:
        if _State.server is not None:
            raise located(
                ValueError,
                "a profiler server runs already, and a process has one; call `purax.profiler.stop_server()`",
            )
        if requires_backend:
            client.default_device()
        _State.server = jaxlib_api.profiler().start_server(port)
        return _State.server


def stop_server() -> None:
    """Stops the server of `start_server`."""
    with _State.lock:
        if _State.server is None:
            raise located(ValueError, "no profiler server runs")
        _State.server = None


def device_memory_profile(backend: str | None = None) -> bytes:
    """What is in the memory of the devices now, in the format of pprof, compressed.

    Args:
        backend: the platform; the default one if left out.
    """
    device = client.devices(backend)[0] if backend else client.default_device()
    return gzip.compress(device.client.heap_profile())


def save_device_memory_profile(filename: os.PathLike[str] | str, backend: str | None = None) -> None:
    """Writes `device_memory_profile` to a file, which `pprof -web` shows.

    >>> import os, tempfile, purax as px
    >>> path = os.path.join(tempfile.mkdtemp(), "memory.prof")
    >>> px.profiler.save_device_memory_profile(path)
    >>> os.path.getsize(path) > 0
    True
    """
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


def register_subprocess(pid: int, port: int) -> Any:
    """Tells the profiler of a process that this one started.

    Args:
        pid: the number of the process.
        port: where its profiler listens.
    """
    return jaxlib_api.profiler().register_subprocess(pid, port)


_ENGINE_NAMES = ("ProfileOptions",)
_DATA_NAMES = ("ProfileData", "ProfileEvent", "ProfilePlane")


def __getattr__(name: str) -> Any:
    if name in _ENGINE_NAMES:
        return getattr(jaxlib_api.profiler(), name)
    if name in _DATA_NAMES:
        return getattr(jaxlib_api.profile_data(), name)
    raise AttributeError(f"module 'purax.profiler' has no attribute {name!r}")


__all__ = [
    *_ENGINE_NAMES,
    *_DATA_NAMES,
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]
