"""A file of a stranger gives a function or ValueError: programs that crash XLA end a process of their own.

`tests/fuzz/damaged_exports.py` damages files at random; here are the kinds of programs that chance does not find.
"""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import export, lax
from purax.config import config
from purax.export import kernels
from purax.export.modules import PortableModule
from purax.xla import isolated, jaxlib_api
from tests.fuzz.damaged_exports import argument, joined, parts

SQUARE = "5x5xf32"


def function(
    name: str, body: str, takes: str = "f32", gives: str = "f32", visibility: str = "private"
) -> str:
    return f"func.func {visibility} @{name}(%x: tensor<{takes}>) -> tensor<{gives}> {{\n{body}\n}}\n"


main = functools.partial(function, "main", visibility="public")


def call(name: str, value: str, result: str) -> str:
    return f"{result} = call @{name}({value}) : (tensor<f32>) -> tensor<f32>\n"


def custom_call(target: str, takes: str, gives: str, settings: str = "", version: int = 4) -> str:
    configuration = f", backend_config = {{{settings}}}" if version == 4 else ""
    return main(
        f'%y = "stablehlo.custom_call"(%x) {{call_target_name = "{target}", api_version = {version} : i32'
        f"{configuration}}} : (tensor<{takes}>) -> tensor<{gives}>\nreturn %y : tensor<{gives}>",
        takes,
        gives,
    )


def aval(text: str) -> list:
    lengths, element = re.fullmatch(r"((?:\d+x)*)(.*)", text).groups()
    names = {"f32": "float32", "i32": "int32", "complex<f32>": "complex64"}
    return [list(map(int, lengths.split("x")[:-1])), names[element], False]


def file_of(text: str, takes: str = "f32", gives: str = "f32", disabled: tuple[str, ...] = ()) -> bytes:
    """A file with a right check sum whose description agrees with the types of its program."""
    data = jaxlib_api.to_portable(text)
    description = {
        "name": "f",
        "in_tree": ["tuple", [["tuple", ["*"]], ["dict", [], []]]],
        "in_avals": [aval(takes)],
        "out_tree": "*",
        "out_avals": [aval(gives)],
        "platforms": {"cpu": 0},
        "disabled": list(disabled),
        "vjp": None,
        "modules": [len(data)],
    }
    return joined(description, data)


def doublings(count: int) -> str:
    text = main(call("f0", "%x", "%y") + "return %y : tensor<f32>")
    for i in range(count):
        text += function(
            f"f{i}", call(f"f{i + 1}", "%x", "%y") + call(f"f{i + 1}", "%y", "%z") + "return %z : tensor<f32>"
        )
    return text + function(f"f{count}", "%y = stablehlo.sine %x : tensor<f32>\nreturn %y : tensor<f32>")


def nested(depth: int) -> str:
    """A choice inside of a choice …, of which none can be made before the program runs."""
    body = "%y = stablehlo.sine %x : tensor<f32>\nstablehlo.return %y : tensor<f32>"
    other = "stablehlo.return %x : tensor<f32>"
    for i in range(depth):
        choice = (
            f'%y{i} = "stablehlo.case"(%i) ({{\n{body}\n}}, {{\n{other}\n}}) : (tensor<i32>) -> tensor<f32>'
        )
        body = f"{choice}\nstablehlo.return %y{i} : tensor<f32>"
    return main(
        f"%i = stablehlo.convert %x : (tensor<f32>) -> tensor<i32>\n{choice}\nreturn %y{depth - 1} : tensor<f32>"
    )


def broadcast(lengths: str) -> str:
    return main(
        f"%y = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<{lengths}xf32>\n"
        f"%z = stablehlo.slice %y [{', '.join(['0:1'] * (lengths.count('x') + 1))}] : (tensor<{lengths}xf32>) -> "
        f"tensor<{'x'.join('1' for _ in lengths.split('x'))}xf32>\n"
        f"%w = stablehlo.reshape %z : (tensor<{'x'.join('1' for _ in lengths.split('x'))}xf32>) -> tensor<f32>\n"
        "return %w : tensor<f32>"
    )


FFT = main(
    "%y = stablehlo.fft %x, type = FFT, length = [9] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>\n"
    "return %y : tensor<8xcomplex<f32>>",
    "8xcomplex<f32>",
    "8xcomplex<f32>",
)
DIVISION = """%a = stablehlo.constant dense<1> : tensor<3xi32>
%b = stablehlo.constant dense<0> : tensor<3xi32>
%c = stablehlo.{} %a, %b : tensor<3xi32>
return %c : tensor<3xi32>"""
REFUSED = {
    "calls itself": (main(call("main", "%x", "%y") + "return %y : tensor<f32>"),),
    "calls in a circle": (
        main(call("g", "%x", "%y") + "return %y : tensor<f32>")
        + function("g", call("h", "%x", "%y") + "return %y : tensor<f32>")
        + function("h", call("g", "%x", "%y") + "return %y : tensor<f32>"),
    ),
    "doubles forever": (doublings(60),),
    "nested deep": (nested(300),),
    "larger than memory": (broadcast("1152921504606846976"),),
    "overflows": (broadcast("4294967296x4294967296x16"),),
    "no main": (function("other", "return %x : tensor<f32>", visibility="public"),),
    "other types": (main("return %x : tensor<3xf32>", "3xf32", "3xf32"),),
    "a token": (
        main(
            "%t = stablehlo.create_token : !stablehlo.token\n"
            '%u = "stablehlo.outfeed"(%x, %t) : (tensor<f32>, !stablehlo.token) -> !stablehlo.token\n'
            "return %x : tensor<f32>"
        ),
    ),
    "a sum over devices": (
        main(
            '%y = "stablehlo.all_reduce"(%x) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
            "%c = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %c : tensor<f32>\n"
            "}) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<f32>) -> tensor<f32>\n"
            "return %y : tensor<f32>"
        ),
    ),
    "an FFT of another length": (FFT, "8xcomplex<f32>", "8xcomplex<f32>"),
    "a kernel that nobody vouches for": (custom_call("kernel", "f32", "f32"),),
    **{
        f"{target}, allowed": (custom_call(target, "f32", "f32"), "f32", "f32", (f"custom_call:{target}",))
        for target in ("xla_ffi_python_cpu_callback", "xla_python_cpu_callback", "purax_sort_1", "purax_rows_1")
    },
    "LAPACK without a result": (custom_call("lapack_spotrf_ffi", SQUARE, SQUARE, "uplo = 76 : ui8"), SQUARE, SQUARE),
    "LAPACK by an old interface": (custom_call("lapack_spotrf_ffi", SQUARE, SQUARE, version=2), SQUARE, SQUARE),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_programs_that_cannot_be_run_are_refused_when_they_are_read(name):
    data = file_of(*REFUSED[name])
    with pytest.raises(ValueError, match="the bytes are not a function that `serialize` wrote: .*module 0"):
        export.deserialize(data)


@pytest.mark.parametrize("operation", ["divide", "remainder"])
def test_a_division_by_zero_that_is_folded_ends_no_process(operation):
    """Some releases of XLA fold it with the processor's instruction, and crash."""
    text = main(DIVISION.format(operation), "f32", "3xi32")
    exported = export.deserialize(file_of(text, "f32", "3xi32"))
    for function in (exported.call, px.jit(lambda x: exported.call(x) + 1)):
        try:
            assert function(jnp.float32(1)).shape == (3,)
        except ValueError as error:
            assert "the exported function cannot be compiled: XLA crashes on it" in str(error)
    assert float(export.deserialize(file_of(main("return %x : tensor<f32>"))).call(2.0)) == 2


def test_a_program_that_crashes_the_compiler_is_an_error(monkeypatch):
    ask = isolated._Process.ask

    def crash(process, request, data):
        if request["kind"] == "compile":
            os.kill(process.process.pid, signal.SIGSEGV)
        return ask(process, request, data)

    exported = export.deserialize(
        file_of(main("%y = stablehlo.sine %x : tensor<f32>\nreturn %y : tensor<f32>"))
    )
    monkeypatch.setattr(isolated._Process, "ask", crash)
    for function in (exported.call, px.jit(lambda x: exported.call(x) + 1)):
        with pytest.raises(ValueError, match="the exported function cannot be compiled: XLA crashes on it"):
            function(jnp.float32(1))
    monkeypatch.undo()
    assert float(exported.call(0.0)) == 0


def test_a_file_cannot_vouch_for_kernels():
    """Those of XLA's own for the CPU, such as TopK, trust what they are given."""
    for name in ("kernel", "TopK"):
        data = file_of(custom_call(name, "f32", "f32"), disabled=(f"custom_call:{name}",))
        with pytest.raises(ValueError, match=f"the kernel '{name}' is not known here"):
            export.deserialize(data)
    with config.override(isolate_exported_programs=False):
        export.deserialize(file_of(custom_call("kernel", "f32", "f32"), disabled=("custom_call:kernel",)))


def test_a_worker_that_is_killed_is_started_again():
    sound = [main(f"%c = stablehlo.constant dense<{i}.0> : tensor<f32>\n%y = stablehlo.add %x, %c : tensor<f32>\n"
                  "return %y : tensor<f32>") for i in range(3)]  # fmt: skip
    with config.override(enable_compilation_cache=False):
        for i, text in enumerate(sound):
            exported = export.deserialize(file_of(text))
            os.kill(isolated._worker.process.pid, signal.SIGKILL)
            assert float(exported.call(jnp.float32(1))) == 1 + i


def test_what_was_read_is_remembered_on_disk(tmp_path, monkeypatch):
    text = main("%y = stablehlo.cosine %x : tensor<f32>\nreturn %y : tensor<f32>")
    settings = config.override(
        compilation_cache_dir=str(tmp_path / "cache"),
        enable_compilation_cache=True,
        persistent_cache_min_compile_time_secs=0.0,
    )
    with settings:
        assert float(export.deserialize(file_of(text)).call(jnp.float32(0))) == 1
        isolated.read_module.cache_clear()
        monkeypatch.setattr(isolated, "_ask", lambda *_: pytest.fail("it was read again"))
        exported = export.deserialize(file_of(text))
        px.clear_caches()
        assert float(exported.call(jnp.float32(0))) == 1


def test_what_was_made_here_is_not_checked(monkeypatch):
    monkeypatch.setattr(isolated, "_ask", lambda *_: pytest.fail("it was read elsewhere"))
    data = export.export(px.jit(lambda x: jnp.sin(x) * 3.5))(1.0).serialize(vjp_order=1)
    assert float(px.grad(export.deserialize(data).call)(0.0)) == 3.5


def test_without_a_process_an_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(isolated, "_worker", None)
    monkeypatch.setattr(sys, "executable", "")
    with config.override(enable_compilation_cache=False):
        text = main("%y = stablehlo.tan %x : tensor<f32>\nreturn %y : tensor<f32>")
        with pytest.raises(RuntimeError, match="PURAX_ISOLATE_EXPORTED_PROGRAMS=0"):
            export.deserialize(file_of(text))
        with config.override(isolate_exported_programs=False):
            assert float(export.deserialize(file_of(text)).call(jnp.float32(0))) == 0
            with pytest.raises(ValueError, match="calls itself"):
                export.deserialize(file_of(*REFUSED["calls itself"]))


def test_a_foreign_function_beside_callbacks_and_native_kernels():
    """Programs around it are compiled elsewhere as well, with the kernels and callbacks that they call."""
    text = main("%y = stablehlo.negate %x : tensor<f32>\nreturn %y : tensor<f32>")
    exported = export.deserialize(file_of(text))
    x = jnp.arange(5000, dtype=jnp.float32)[::-1]

    @px.jit
    def f(x):
        doubled = px.pure_callback(lambda v: np.float32(2) * v, px.ShapeDtypeStruct((), "float32"), x.max())
        return exported.call(jnp.sort(x)[7]), exported.call(doubled), jnp.linalg.cholesky(jnp.eye(3) * x[0])

    first, second, third = f(x)
    assert float(first) == -7 and float(second) == -9998 and third.shape == (3, 3)


# --- kernels


def _linear_algebra(dtype):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4, 3)), dtype)
    square = x[:, :3]
    definite = square @ jnp.conj(jnp.swapaxes(square, -1, -2)) + 3 * jnp.eye(3, dtype=dtype)
    diagonals = definite[..., 0]
    return {
        "cholesky": (lax.linalg.cholesky, definite),
        "lu": (lax.linalg.lu, x),
        "qr": (lambda x: lax.linalg.qr(x, full_matrices=False), x),
        "pivoted qr": (lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False), x),
        "full qr": (lambda x: jnp.linalg.qr(x, mode="complete"), x),
        "eigh": (lax.linalg.eigh, definite),
        "eig": (lax.linalg.eig, square),
        "svd": (lambda x: lax.linalg.svd(x, full_matrices=False), x),
        "full svd": (lambda x: lax.linalg.svd(x, full_matrices=True), x),
        "singular values": (lambda x: lax.linalg.svd(x, compute_uv=False), x),
        "svd by qr": (lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm.QR), x),
        "schur": (lax.linalg.schur, square),
        "hessenberg": (lax.linalg.hessenberg, square),
        "tridiagonal": (lambda x: lax.linalg.tridiagonal(x, lower=True), definite),
        "triangular": (lambda x: lax.linalg.triangular_solve(x, x, left_side=False, lower=True), definite),
        "tridiagonal_solve": (lambda d: lax.linalg.tridiagonal_solve(d, 9 + d, d, d[..., None]), diagonals),
        "fft": (lambda x: jnp.fft.fftn(x), square),
        "one by one": (lambda x: lax.linalg.hessenberg(x[:, :1, :1]), square),
    }


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_calls_of_kernels_that_are_right_pass_and_others_do_not(dtype):
    """What purax exports passes; with a length, a type or a setting changed, it is refused."""
    seen = set()
    for name, (f, x) in _linear_algebra(dtype).items():
        exported = export.export(px.jit(f))(x)
        for made in isolated.read_module(exported.mlir_module_serialized).kernel_calls:
            seen.add(re.sub(r"lapack_[sdcz]|_ffi", "", made.target))
            assert kernels.check_kernel_call(*made) is None, (name, made)
            sides = made.operands, made.results
            for side in range(2):
                for i, text in enumerate(sides[side]):
                    for other in (
                        re.sub(r"\d+x", "17x", text, count=1),
                        text.replace("f32", "f64"),
                        "tensor<1x1xi8>",
                    ):
                        changed = [list(types) for types in sides]
                        changed[side][i] = other
                        wrong = kernels.check_kernel_call(made.target, *changed, made.attributes)
                        assert other == text or made.target == "fft" or wrong is not None, (name, made, other)
            for setting in made.attributes:
                attributes = made.attributes | {setting: "7 : ui8"}
                assert kernels.check_kernel_call(made.target, *sides, attributes) is not None
    wanted = {
        "potrf",
        "getrf",
        "geqrf",
        "geqp3",
        "geev",
        "gesdd",
        "gesvd",
        "gees",
        "gehrd",
        "trsm",
        "gtsv",
        "fft",
    }
    assert wanted <= seen


# --- descriptions


def test_every_part_of_a_description_is_checked():
    """Each value in it, also of the derivative, is replaced by one of another kind."""

    def f(x, *, k):
        return {"y": x * k, "n": [x.sum(), None]}

    data = bytes(export.export(px.jit(f))(jnp.ones(2), k=2.0).serialize(vjp_order=1))
    description, modules = parts(data)
    text = json.dumps(description)
    found = list(re.finditer(r'"(?:[^"\\]|\\.)*"|\d+|true|false|null', text))
    assert len(found) > 60
    accepted = []
    for place in found:
        for other in {"-1", '"?"', "null", "[]", "{}", "1e400", "9" * 30} - {place[0]}:
            changed = (text[: place.start()] + other + text[place.end() :]).encode()
            try:
                made = json.loads(changed)
                export.deserialize(joined(made, modules))
                accepted.append((text[: place.start()][-40:], place[0], other))
            except ValueError:
                pass
    # A function may have another name, as a platform may, and dicts other keys, also numbers in results.
    names, keys = {'"f"', '"f_vjp"', '"cpu"', '"k"'}, {'"n"', '"y"'}
    wrong = [
        (before, place, other)
        for before, place, other in accepted
        if not (place in names and other == '"?"' or place in keys and other not in ("[]", "{}"))
    ]
    assert not wrong


def test_a_derivative_must_belong_to_its_function():
    (first, modules), (second, _) = (
        parts(bytes(export.export(px.jit(jnp.sin))(jnp.ones(n)).serialize(vjp_order=1))) for n in (2, 3)
    )
    first["vjp"] = second["vjp"]
    with pytest.raises(
        ValueError, match="the derivative of the description has other types than the function"
    ):
        export.deserialize(joined(first, modules))


def test_nothing_of_a_file_is_imported_or_run():
    """The process that reads programs loads nothing of purax but the module that knows jaxlib."""
    code = "import sys; sys.argv = ['']; exec(open(%r).read()); print(sorted(m for m in sys.modules if 'purax' in m))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code % isolated.isolated_worker.__file__],
        input=b"",
        capture_output=True,
        check=True,
    )
    assert done.stdout.strip() in (b"[]", b"")


def test_arguments_are_made_for_every_type():
    """The helper of the random tests knows the types of exported functions."""
    assert argument(px.random.key(0).aval).dtype == px.random.key(0).dtype
    assert PortableModule(b"").is_foreign
