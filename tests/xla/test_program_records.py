"""A program is found on disk before it is lowered, and never one that would have been lowered to another text.

Every program of the table of cases, and programs of all kinds, is lowered under each flag that may change it: programs
with equal keys have equal texts, here and in a process that numbers its objects in another order.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.config import config
from purax.core import jaxpr_hash
from purax.core.avals import ShapedArray
from purax.execution import compiled_program
from purax.lowering import jaxpr_to_stablehlo
from purax.xla import client, compiler, program_records
from tests import cases

DEVICE = client.devices("cpu")[0]
FLAGS = [
    {},
    {"native_kernels": False},
    {"default_matmul_precision": "highest"},
    {"host_products": False},
    {"disable_most_optimizations": True},
]
X, KEY = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), np.uint32([3, 4])


def all_cases() -> list:
    modules = sorted(module.name for module in pkgutil.iter_modules(cases.__path__))
    return [case for name in modules for case in importlib.import_module(f"tests.cases.{name}").CASES]


def few_of_each(count: int) -> list:
    """The first cases of each primitive."""
    found = defaultdict(list)
    for case in all_cases():
        found[case.primitive.name].append(case)
    return [case for own in found.values() for case in own[:count]]


def operations(chosen: list | None = None) -> Iterator[tuple[str | None, str]]:
    """The key and the text of each operation of the table, or of some cases."""
    for case in all_cases() if chosen is None else chosen:
        avals = [ShapedArray(x.shape, x.dtype) for x in case.operands]
        portable = jaxpr_hash.portable_operation(case.primitive, avals, case.params)
        for platform in ("cpu", "cuda", "tpu"):
            with contextlib.suppress(NotImplementedError, TypeError, ValueError):
                module = jaxpr_to_stablehlo.lower_primitive(case.primitive, avals, case.params, platform)
                key = program_records.make_key(portable, case.primitive.name, (DEVICE,), (), ())
                yield None if key is None else f"{key.hex()} {platform}", module.text(case.primitive.name)


def loop(bounds):
    limit, step = bounds
    return lambda x: px.lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + step, c[1] * 2), (0, x))[1]


@px.custom_jvp
def own_rule(x):
    return jnp.sin(x)


own_rule.defjvp(lambda primals, tangents: (own_rule(primals[0]), tangents[0]))


def own_rule_with(factor):
    @px.custom_jvp
    def scaled(x):
        return x * factor

    scaled.defjvp(lambda primals, tangents: (scaled(primals[0]), tangents[0]))
    return scaled


def scoped(name):
    def f(x):
        with px.named_scope(name):
            return jnp.tanh(x)

    return f


def with_metadata(value):
    from purax.experimental.xla_metadata import set_xla_metadata

    def f(x):
        with set_xla_metadata(kind=value):
            return jnp.exp(x)

    return f


def named(name):
    def f(x):
        return jnp.cos(x) + 1

    f.__name__ = name
    return lambda x: px.jit(f)(x)


def each(build, *values):
    """A program for each value."""
    return {f"{build.__name__} {value!r}": build(value) for value in values}


def add(number):
    return lambda x: x + number


def scan(options):
    length, reverse = options
    return lambda x: px.lax.scan(lambda c, _: (c * 2, c.sum()), x, length=length, reverse=reverse)


def gradient(name):
    return px.grad(lambda x: getattr(jnp, name)(x).sum())


def norm(axis):
    return lambda x: jnp.linalg.norm(x, axis=axis)


def sort(axis):
    return lambda x: jnp.sort(x, axis)


def product(precision):
    return lambda x: jnp.dot(x, x.T, precision=precision)


def normal(shape):
    return lambda x: x.sum() + px.random.normal(px.random.PRNGKey(1), shape)


PROGRAMS = {
    **each(add, 0.0, -0.0, 1.0, 1, True, np.float64(1), 1000),
    **each(loop, (3, 1), (3, 2), (4, 1)),
    **each(scan, (2, False), (2, True), (3, False)),
    **each(own_rule_with, 2.0, 3.0),
    **each(gradient, "sin", "tanh"),
    **each(norm, None, 0, 1),
    **each(sort, 0, 1),
    **each(scoped, "a", "b", "a/b"),
    **each(with_metadata, "a", "b"),
    **each(named, "f", "g"),
    **each(product, None, "high", "highest"),
    **each(normal, (3,), (4,)),
    "cond": lambda x: px.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "cond, turned": lambda x: px.lax.cond(x[0, 0] > 0, jnp.cos, jnp.sin, x),
    "own rule": own_rule,
    "product of parts": lambda x: x[:, :2] @ x[:, 2:].T,
    "solve": lambda x: jnp.linalg.solve(x @ x.T + 3 * jnp.eye(3), x),
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(4, 3),
    "index": lambda x: x[jnp.array([0, 2])],
    "set": lambda x: x.at[jnp.array([0, 2])].set(1),
    "set, unique": lambda x: x.at[jnp.array([0, 2])].set(1, unique_indices=True),
}
ARGUMENTS = [X, X.astype(np.float16), X.astype(np.int32)]


def programs() -> Iterator[tuple[str | None, str]]:
    """The key and the text of programs of all kinds."""
    for name, function in PROGRAMS.items():
        for x in ARGUMENTS[: 1 if "gradient" in name or "solve" in name else 3]:
            closed = px.make_jaxpr(function)(x)
            assert not closed.consts or all(np.size(c) < 100 for c in closed.consts)
            closed = type(closed)(
                closed.jaxpr.replace(constvars=(), invars=[*closed.jaxpr.constvars, *closed.jaxpr.invars])
            )
            donations = (False, True) if not closed.consts and len(closed.jaxpr.invars) == 1 else (False,)
            for donated in donations:
                prepared = compiled_program.Prepared(closed, (donated,) * len(closed.jaxpr.invars), False)
                key = program_records.make_key(
                    jaxpr_hash.portable_fingerprint(prepared.closed), "f", (DEVICE,), prepared.donated, ()
                )
                yield None if key is None else key.hex(), prepared.lower("cpu").text("f")


@pytest.fixture
def records(tmp_path):
    with config.override(
        compilation_cache_dir=str(tmp_path),
        enable_compilation_cache=True,
        persistent_cache_min_compile_time_secs=0.0,
    ):
        tmp_path.chmod(0o700)
        compiler.clear_memory()
        compiled_program.clear()
        yield tmp_path
    compiler.clear_memory()


def wrong(pairs) -> list[str]:
    """The texts that share a key with another text."""
    texts = defaultdict(set)
    for key, text in pairs:
        texts[key].add(text)
    texts.pop(None, None)
    return [min(found)[:200] for found in texts.values() if len(found) > 1]


@pytest.mark.filterwarnings("ignore:Some donated buffers")
@pytest.mark.parametrize("source", [operations, programs])
def test_equal_keys_mean_equal_texts(records, source):
    pairs = list(source())
    under_flags = source if source is programs else functools.partial(operations, few_of_each(3))
    for flags in FLAGS[1:]:
        with config.override(**flags):
            pairs += under_flags()
    keys = [key for key, _ in pairs]
    assert sum(key is not None for key in keys) > 0.9 * len(keys)
    assert len(set(keys)) > len({text for _, text in pairs}) / 2
    assert not wrong(pairs)


def test_the_table_notices_what_a_key_leaves_out(records, monkeypatch):
    monkeypatch.setattr(jaxpr_hash._Digest, "parameter", lambda self, value: "")
    assert len(wrong(operations(few_of_each(12)))) > 50


def written_down() -> str:
    return json.dumps([*programs(), *operations(all_cases()[::7])])


def written_down_elsewhere(records, before: str, seed: str) -> list[Any]:
    """What `written_down` says in a process that did something `before`."""
    code = (
        f"import purax as px, numpy as np, warnings; warnings.simplefilter('ignore')\n{before}\n"
        "from tests.xla import test_program_records as own\n"
        "print(own.written_down())"
    )
    environment = os.environ | {"PYTHONHASHSEED": seed, "PURAX_COMPILATION_CACHE_DIR": str(records)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_keys_mean_the_same_in_another_process(records):
    """One that met other objects first, with other hashes of names."""
    others = (
        "import purax.scipy.special\n"
        "px.jit(lambda x: px.scipy.special.gammaln(x) + px.random.gamma(px.random.key(1), 2.0))(np.float32(2))\n"
        "px.jit(lambda x: px.pure_callback(np.sin, x, x))(np.float32(1))"
    )
    here, there = (written_down_elsewhere(records, *how) for how in (("", "3"), (others, "7")))
    assert [key for key, _ in here] == [key for key, _ in there]
    assert not wrong([*here, *there])


OTHER_VALUES = {
    str: lambda value, flag: next(c for c in flag.choices or ("other",) if c != value),
    bool: lambda value, flag: not value,
    int: lambda value, flag: 1 if value in (None, -1) else value + 1,
    float: lambda value, flag: value + 0.5,
}
# Flags that cannot be set like this, or whose objects have no key.
LEFT_OUT = {
    *("platforms", "default_device", "mesh", "num_cpu_devices", "cpu_threads", "user_contexts"),
    *("default_prng_impl", "dump_ir_to", "enable_compilation_cache", "compilation_cache_dir"),
    *("cpu_enable_async_dispatch", "keep_freed_memory", "memory_preallocate"),  # set before the client starts
}


def test_each_flag_changes_the_key_or_no_text(records):
    """Flags that a key leaves out change no program."""
    portable = jaxpr_hash.portable_operation(px.lax.sin_p, [ShapedArray((3,), np.dtype("float32"))], {})
    make = lambda: program_records.make_key(portable, "sin", (DEVICE,), (), ())  # noqa: E731
    before = make()
    assert before is not None and before == make()
    texts = None
    for name, flag in config.flags.items():
        value = config.read(name)
        kind = OTHER_VALUES.get(flag.value_type)
        if name in LEFT_OUT or kind is None:
            continue
        with config.override(**{name: kind(value, flag)}):
            if name not in program_records._IRRELEVANT:
                assert make() != before, name
                continue
            assert make() == before, name
            found = [text for _, text in operations(all_cases()[::11])]
        texts = texts or [text for _, text in operations(all_cases()[::11])]
        assert found == texts, name


def test_objects_in_flags_have_no_key(records):
    portable = jaxpr_hash.portable_operation(px.lax.sin_p, [ShapedArray((3,), np.dtype("float32"))], {})
    with px.default_device(DEVICE):
        assert program_records.make_key(portable, "sin", (DEVICE,), (), ()) is None


def portable(function, *args):
    closed = px.make_jaxpr(function)(*args)
    return jaxpr_hash.portable_fingerprint(closed)


def test_what_only_this_process_knows_has_no_key():
    from purax.compat.extension import Primitive

    mine = Primitive("mine")
    mine.def_impl(lambda x: x)
    mine.def_abstract_eval(lambda x: x)
    x = np.float32(1)
    assert portable(lambda x: x + 1, x) is not None
    assert portable(lambda x: mine.bind(x), x) is None
    assert portable(lambda x: px.pure_callback(np.sin, x, x), x) is None
    assert portable(px.jit(lambda x: px.pure_callback(np.sin, x, x)), x) is None
    assert (
        portable(lambda x: px.lax.scan(lambda c, _: (px.pure_callback(np.sin, c, c), None), x, length=2), x)
        is None
    )


SECOND = """
import numpy as np, purax as px, purax.numpy as jnp
from purax.lowering import jaxpr_to_stablehlo
from purax.xla import compiler
lowered = []
old = jaxpr_to_stablehlo.lower_jaxpr
jaxpr_to_stablehlo.lower_jaxpr = lambda *args, **kwargs: (lowered.append(1), old(*args, **kwargs))[1]

@px.jit
def step(w, x):
    def loss(w):
        return jnp.sum(jnp.sort(jnp.tanh(x @ w)) ** 2) + jnp.linalg.norm(jnp.linalg.inv(w))
    value, slope = px.value_and_grad(loss)(w)
    return value, w - 0.1 * slope

w = np.eye(4, dtype=np.float32) + 0.1
print([float(step(w, w)[0]).hex(), float(step(w, w)[1].sum()).hex()])
print(len(lowered), compiler.stats.compiles, compiler.stats.disk_hits)
"""


def second(folder, **settings):
    environment = os.environ | {
        "PURAX_COMPILATION_CACHE_DIR": str(folder),
        "PURAX_ENABLE_COMPILATION_CACHE": "1",
        "PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **settings,
    }
    done = subprocess.run(
        [sys.executable, "-c", SECOND], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    value, counts = done.stdout.splitlines()
    return value, tuple(map(int, counts.split()))


def test_a_second_process_does_not_lower(tmp_path):
    tmp_path.chmod(0o700)
    first, (lowered, compiles, _) = second(tmp_path)
    assert lowered == compiles == 1
    again, counts = second(tmp_path)
    assert again == first and counts == (0, 0, 1)
    other, counts = second(tmp_path, PURAX_NATIVE_KERNELS="0")  # another program
    assert counts[:2] == (1, 1)
    assert np.isclose(
        *(float.fromhex(json.loads(each.replace("'", '"'))[0]) for each in (first, other)), rtol=1e-4
    )


def test_a_damaged_record_or_a_lost_program_is_lowered_again(tmp_path):
    tmp_path.chmod(0o700)
    first, _ = second(tmp_path)
    sizes = {path: path.stat().st_size for path in tmp_path.glob("*.purax")}
    record, program = sorted(sizes, key=lambda path: sizes[path])[:2]
    record.write_bytes(record.read_bytes()[:-1])
    assert second(tmp_path) == (first, (1, 0, 1))  # by its text
    assert second(tmp_path) == (first, (0, 0, 1))
    program.unlink()
    assert second(tmp_path) == (first, (1, 1, 0))
    assert second(tmp_path) == (first, (0, 0, 1))


def test_a_record_that_somebody_else_wrote_is_not_read(tmp_path):
    tmp_path.chmod(0o700)
    first, _ = second(tmp_path)
    record = min(tmp_path.glob("*.purax"), key=lambda path: path.stat().st_size)
    data = bytearray(record.read_bytes())
    data[-3] ^= 1
    record.write_bytes(bytes(data))
    assert second(tmp_path) == (first, (1, 0, 1))


def test_kernels_of_users_are_looked_for_each_time(records):
    """A program that calls one is lowered, so that one which is not registered is an error with the user's line."""
    call = px.ffi.ffi_call("nobody_has_this", px.ShapeDtypeStruct((3,), np.float32))
    written = []
    for _ in range(2):
        with pytest.raises(LookupError, match="nobody_has_this"):
            px.jit(lambda x: call(x) * 2)(np.zeros(3, np.float32))
        written.append(len(list(records.glob("*.purax"))))
    assert written == [0, 0]


def test_files_that_changed_are_another_purax(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    for name in ("a.py", "inner/b.so", "notes.txt"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1e9, 1e9))
    monkeypatch.setattr(program_records, "_PACKAGE", tmp_path)
    state = program_records._package_state.__wrapped__
    assert state() is None  # newer than this process, though their times say something else
    monkeypatch.setattr(program_records, "_IMPORTED", time.time_ns() + 10**12)
    first = state()
    os.utime(tmp_path / "notes.txt", (2e9, 2e9))
    assert state() == first is not None
    os.utime(tmp_path / "inner/b.so", (1e9, 1e9 + 1))
    second = state()
    assert second not in (first, None)
    time.sleep(0.02)  # the system's clock of files goes by ticks
    (tmp_path / "a.py").write_text("y")
    os.utime(tmp_path / "a.py", (1e9, 1e9))  # of the same size and time, as archives and reproducible builds have them
    assert state() not in (first, second, None)
    os.utime(tmp_path / "a.py", (1e10, 1e10))
    assert state() is None
