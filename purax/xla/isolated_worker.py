"""The process in which XLA reads and compiles programs from files: one that crashes XLA ends only this process.

It is a script: it loads `jaxlib_api.py` by its path and nothing else of purax, so that it starts at once.
Requests come on stdin and answers go to stdout, each a JSON object and some bytes, both after their lengths. It ends
when stdin does, hence with the process that started it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import signal
import struct
import sys
from typing import IO, Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_LENGTHS = struct.Struct("<QQ")
_NAME = re.compile(r"[\w.$-]+")
_FLOATS = r"b?f\d+(?:E\dM\d(?:B11)?(?:FN|FNU|FNUZ)?)?"
_TENSOR = re.compile(rf"tensor<((?:(?:\d+|\?)x)*)(u?i(?:1|2|4|8|16|32|64)|{_FLOATS}|complex<f32>|complex<f64>)>")
_LARGEST = 1 << 48  # bytes of an array in a program
_DEEPEST = 200  # regions inside of regions
_MOST = 20_000_000  # operations, when every call is counted as what it calls
_COMMUNICATION = frozenset(
    "stablehlo." + name
    for name in (
        *(
            "all_gather",
            "all_reduce",
            "all_to_all",
            "collective_broadcast",
            "collective_permute",
            "cross-replica-sum",
        ),
        *("infeed", "outfeed", "recv", "reduce_scatter", "send"),
    )
)


class RefusedError(ValueError):
    """Why a program is not taken."""


def read_message(file: IO[bytes]) -> tuple[Any, bytes] | None:
    """A JSON value and bytes; None at the end."""
    head = file.read(_LENGTHS.size)
    if len(head) < _LENGTHS.size:
        return None
    text_size, data_size = _LENGTHS.unpack(head)
    text, data = file.read(text_size), file.read(data_size)
    if len(text) < text_size or len(data) < data_size:
        return None
    return json.loads(text), data


def write_message(file: IO[bytes], value: Any, data: bytes = b"") -> None:
    """What `read_message` reads."""
    text = json.dumps(value).encode()
    file.write(_LENGTHS.pack(len(text), len(data)))
    file.write(text)
    file.write(data)
    file.flush()


def _check_type(text: str, what: str) -> None:
    found = _TENSOR.fullmatch(text)
    if found is None:
        raise RefusedError(f"{what} has the type {text[:200]}, which is not an array of a fixed shape")
    size = 16
    for length in found[1].split("x")[:-1]:
        size *= 1 if length == "?" else int(length)  # which is checked again when it is known
        if size > _LARGEST:
            raise RefusedError(f"{what} has the type {text[:200]}, which is larger than any memory")


def _symbols(operation: Any, ir: Any) -> list[str]:
    """The functions that an operation names."""
    found = []
    for name in ("callee", "decomposition", "called_computations"):
        if name in operation.attributes:
            attribute = operation.attributes[name]
            parts = list(attribute) if isinstance(attribute, ir.ArrayAttr) else [attribute]
            found += [ir.FlatSymbolRefAttr(part).value for part in parts]
    return found


class Examination:
    """What is to be known of a module: its functions, the type of `main`, the kernels that it calls."""

    def __init__(self, module: Any, ir: Any):
        self.ir = ir
        self.kernel_calls: list[tuple[str, list[str], list[str], dict[str, str]]] = []
        self.operations: dict[str, int] = {}
        self.calls: dict[str, list[str]] = {}
        self.functions: list[tuple[str, str]] = []
        main = None
        for item in module.body.operations:
            operation = item.operation
            if operation.name != "func.func":
                raise RefusedError(f"it holds {operation.name} outside of functions")
            name = operation.attributes["sym_name"].value
            if not _NAME.fullmatch(name):
                raise RefusedError(f"it has a function called {name[:100]!r}")
            if {"arg_attrs", "res_attrs"} & set(operation.attributes):
                raise RefusedError(f"arguments of its function {name!r} have attributes")
            self.calls[name], self.operations[name] = [], 0
            for region in operation.regions:
                self._walk(region, name)
            if name == "main":
                main = ir.FunctionType(operation.attributes["function_type"].value)
            self.functions.append((name, str(operation)))
        if main is None:
            raise RefusedError("it has no function called main")
        if len(self.calls) != len(self.functions):
            raise RefusedError("two of its functions have the same name")
        self.in_types, self.out_types = [str(t) for t in main.inputs], [str(t) for t in main.results]
        self._refuse_cycles()

    def _walk(self, outermost: Any, function: str) -> None:
        waiting = [(outermost, 0)]
        while waiting:
            region, depth = waiting.pop()
            if depth > _DEEPEST:
                raise RefusedError(f"its operations are nested more than {_DEEPEST} deep")
            for block in region.blocks:
                for argument in block.arguments:
                    _check_type(str(argument.type), "an argument of a block")
                for item in block.operations:
                    operation = item.operation
                    self._check(operation, function)
                    waiting += [(inner, depth + 1) for inner in operation.regions]

    def _check(self, operation: Any, function: str) -> None:
        name = operation.name
        dialect = name.partition(".")[0]
        if dialect not in ("stablehlo", "func", "chlo"):
            raise RefusedError(f"it has the operation {name}, which is not of StableHLO")
        if name in _COMMUNICATION:
            raise RefusedError(f"it has the operation {name}, which communicates with others")
        for result in operation.results:
            _check_type(str(result.type), f"a result of {name}")
        if name in ("stablehlo.custom_call", "stablehlo.fft"):
            self._note_kernel(operation)
        self.operations[function] += 1
        self.calls[function] += _symbols(operation, self.ir)

    def _note_kernel(self, operation: Any) -> None:
        """Keeps what a kernel is called with; the operation `fft` is one, too."""
        attributes = operation.attributes
        target = "fft"
        told = {name: str(attributes[name]) for name in ("fft_type", "fft_length") if name in attributes}
        if operation.name == "stablehlo.custom_call":
            target, told = attributes["call_target_name"].value, {}
            given = attributes["backend_config"] if "backend_config" in attributes else None
            if isinstance(given, self.ir.DictAttr):
                told = {given[i].name: str(given[i].attr) for i in range(len(given))}
            if target.startswith(("lapack_", "tridiagonal_")) and str(attributes["api_version"]) != "4 : i32":
                raise RefusedError(f"it calls the kernel {target!r} by an interface that it does not have")
        sides = (operation.operands, operation.results)
        operands, results = ([str(value.type) for value in side] for side in sides)
        self.kernel_calls.append((target, operands, results, told))

    def _refuse_cycles(self) -> None:
        """Functions that call each other in a circle would be inlined forever, long chains of doublings almost so."""
        sizes: dict[str, int] = {}
        entered: set[str] = set()
        waiting = ["main", *self.calls]
        while waiting:
            name = waiting[-1]
            if name in sizes:
                waiting.pop()
                continue
            if name not in self.calls:
                raise RefusedError(f"it calls a function {name[:100]!r} that it does not have")
            missing = [callee for callee in self.calls[name] if callee not in sizes]
            if missing and name in entered:
                raise RefusedError(f"its function {name!r} calls itself")
            entered.add(name)
            if missing:
                waiting += dict.fromkeys(missing)
                continue
            sizes[name] = self.operations[name] + sum(sizes[callee] for callee in self.calls[name])
            if sizes[name] > _MOST:
                raise RefusedError(
                    f"its function {name!r} has more than {_MOST} operations with those it calls"
                )
            waiting.pop()


def _limit_memory(size: int | None) -> None:
    """Lets this process, if it is a worker, take so many bytes more than now; None is as many as there are."""
    if resource is None or __name__ != "__main__" or not os.path.exists("/proc/self/statm"):
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if size is None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        return
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (limit if most < 0 else min(limit, most), most))


class Worker:
    """Answers requests."""

    def __init__(self, api: Any):
        self.api = api
        self.client: Any = None
        self.libraries: set[str] = set()

    def print(self, request: Any, data: bytes) -> tuple[Any, bytes]:
        """A module in portable bytecode as text."""
        return {}, str(self.api.from_portable(data)).encode()

    def refine(self, request: Any, data: bytes) -> tuple[Any, bytes]:
        """A module in portable bytecode with dynamic dimensions, for arguments of fixed types."""
        _limit_memory(2**32 + 64 * len(data))
        return {}, self.api.refined(data, request["types"])

    def read(self, request: Any, data: bytes) -> tuple[Any, bytes]:
        """What is to be known of a module in portable bytecode; its functions as text."""
        ir = self.api.mlir()
        _limit_memory(2**32 + 64 * len(data))
        module = self.api.from_portable(data)
        with module.context:
            try:
                module.operation.verify()
            except ir.MLIRError as error:
                raise RefusedError(f"it is not a correct program: {error}") from None
            found = Examination(module, ir)
        self.api.parse_module("\n".join(text for _, text in found.functions))  # as the compiler will
        return {
            "functions": found.functions,
            "in_types": found.in_types,
            "out_types": found.out_types,
            "kernel_calls": found.kernel_calls,
        }, b""

    def compile(self, request: Any, data: bytes) -> tuple[Any, bytes]:
        """A program as text, compiled for one device of this machine."""
        _limit_memory(None)
        api = self.api
        if self.client is None:
            self.client = api.make_cpu_client(1, request["threads"])
        if request["lapack"]:
            api.register_lapack()
        library = request["library"]
        if library is not None and library not in self.libraries:
            loaded = ctypes.CDLL(library)
            for name, own in request["kernels"].items():
                api.register_target(name, api.make_capsule(getattr(loaded, own)), "cpu")
            self.libraries.add(library)
        options = api.CompileOptions.ParseFromString(bytes.fromhex(request["options"]))
        device = self.client.devices()[0]
        options.device_assignment = api.make_device_assignment([[device.id]])
        callbacks = [lambda *_: None] * request["callbacks"]
        program = api.parse_module(data.decode()) if callbacks else data.decode()
        loaded = api.compile_and_load(self.client, program, api.DeviceList((device,)), options, callbacks)
        return {}, loaded.serialize()

    def answer(self, request: Any, data: bytes) -> tuple[Any, bytes]:
        try:
            return getattr(self, request["kind"])(request, data)
        except Exception as error:
            return {"refused": f"{error}"[:2000] or type(error).__name__}, b""


def _load_jaxlib_api(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("purax_door", path)
    assert spec is not None and spec.loader is not None
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    return api


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever waits for the answer decides
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    first = read_message(requests)
    if first is None:
        return
    sys.path[:] = first[0]["path"]
    worker = Worker(_load_jaxlib_api(first[0]["jaxlib_api"]))
    while True:
        message = read_message(requests)
        if message is None:
            return
        write_message(answers, *worker.answer(*message))


if __name__ == "__main__":
    main()
