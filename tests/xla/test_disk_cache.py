"""What was compiled once is found again by other processes, and nothing that lies in the folder can hurt a run."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path

import numpy as np
import pytest

from purax.config import config
from purax.xla import compiler, disk_cache, execute, private_files
from purax.xla.execute import BufferType

COMPILE = """
import numpy as np
from purax.xla import client, compiler, execute
from purax.xla.execute import BufferType
text = '''module @increment {
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %c = stablehlo.constant dense<1.0> : tensor<3xf32>
    %y = stablehlo.add %x, %c : tensor<3xf32>
    return %y : tensor<3xf32>
  }
}'''
device = client.devices("cpu")[0]
program = compiler.compile_program(text, [BufferType((3,), np.dtype(np.float32))], (device,))
result = execute.to_numpy(program([execute.device_put(np.zeros(3, np.float32), device)])[0])
assert result.tolist() == [1, 1, 1], result
print(compiler.stats.compiles, compiler.stats.disk_hits, compiler.stats.disk_writes)
"""


@pytest.fixture
def run_increment(increment_text, vector_type, device):
    """Compile and run x + amount as if in a new process: nothing is left in memory."""

    def run(amount: float = 1.0) -> None:
        compiler.clear_memory()
        program = compiler.compile_program(increment_text(3, amount), [vector_type(3)], (device,))
        result = execute.to_numpy(program([execute.device_put(np.zeros(3, np.float32), device)])[0])
        assert result.tolist() == [amount] * 3

    return run


def entries(folder) -> list:
    return sorted(folder.glob("*" + disk_cache.SUFFIX))


def counts() -> tuple[int, int, int]:
    stats = compiler.stats
    return stats.compiles, stats.disk_hits, stats.disk_writes


def test_a_program_is_found_again(cache_folder, run_increment):
    run_increment()
    assert counts() == (1, 0, 1)
    run_increment()
    run_increment()
    assert counts() == (1, 2, 1)
    assert len(entries(cache_folder)) == 1
    assert all(
        compiler.stats.seconds[phase] > 0 for phase in ("compile", "serialize", "write", "deserialize")
    )


def test_another_process_finds_it(tmp_path, run_python):
    environment = {
        "PURAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    assert [run_python(COMPILE, **environment) for _ in range(2)] == ["1 0 1", "0 1 0"]


def test_another_device_finds_it(tmp_path, run_python):
    on_another_device = """
compiler.clear_memory()
device = client.devices("cpu")[2]
program = compiler.compile_program(text, [BufferType((3,), np.dtype(np.float32))], (device,))
(result,) = program([execute.device_put(np.zeros(3, np.float32), device)])
assert result._sharding.device_set == {device}
print(execute.to_numpy(result).tolist(), compiler.stats.compiles, compiler.stats.disk_hits)
"""
    output = run_python(
        COMPILE + on_another_device,
        PURAX_NUM_CPU_DEVICES="3",
        PURAX_COMPILATION_CACHE_DIR=str(tmp_path),
        PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
    )
    assert output.splitlines() == ["1 0 1", "[1.0, 1.0, 1.0] 1 1"]


def test_processes_that_write_at_once_do_not_hurt_each_other(tmp_path, start_python, run_python):
    environment = {
        "PURAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    processes = [start_python(COMPILE, **environment) for _ in range(4)]
    for process in processes:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0 and errors == "", errors
        assert output.strip() in ("1 0 1", "0 1 0")
    assert len(entries(tmp_path)) == 1
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".key", ".purax"]
    assert run_python(COMPILE, **environment) == "0 1 0"


DAMAGES = {
    "empty": lambda content: b"",
    "header cut": lambda content: content[:20],
    "payload cut": lambda content: content[:-7],
    "longer": lambda content: content + b"more",
    "garbage": lambda content: os.urandom(len(content)),
    "one bit": lambda content: content[:-50] + bytes([content[-50] ^ 1]) + content[-49:],
    "other magic": lambda content: b"PURAXEX1" + content[8:],
    "other length": lambda content: content[:40] + b"\1" + content[41:],
    "other key": lambda content: content[:8] + bytes(32) + content[40:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_a_miss_and_is_replaced(damage, cache_folder, run_increment):
    run_increment()
    (path,) = entries(cache_folder)
    good = path.read_bytes()
    bad = DAMAGES[damage](good)
    assert bad != good
    path.write_bytes(bad)
    assert disk_cache.read(bytes.fromhex(path.stem)) is None
    assert not path.exists()
    path.write_bytes(bad)
    run_increment()
    assert counts() == (2, 0, 2)
    run_increment()
    assert counts() == (2, 1, 2)


def test_the_entry_of_another_program_is_a_miss(cache_folder, run_increment):
    run_increment(1.0)
    (first,) = entries(cache_folder)
    content = first.read_bytes()
    run_increment(2.0)
    (second,) = set(entries(cache_folder)) - {first}
    second.write_bytes(content)
    run_increment(2.0)
    assert counts()[:2] == (3, 0)


def test_bytes_that_the_engine_refuses_are_a_miss(cache_folder, run_increment):
    run_increment()
    (path,) = entries(cache_folder)
    assert disk_cache.write(bytes.fromhex(path.stem), b"sound in our eyes, but no executable")
    run_increment()
    assert counts()[:2] == (2, 0)
    run_increment()
    assert counts()[:2] == (2, 1)


def test_a_folder_in_the_place_of_an_entry_is_a_miss(cache_folder, run_increment, caplog):
    run_increment()
    (path,) = entries(cache_folder)
    path.unlink()
    path.mkdir()
    with caplog.at_level(logging.WARNING, "purax"):
        run_increment()
        run_increment()
    assert counts()[:2] == (3, 0)
    assert len(caplog.records) == 1


def test_an_unwritable_folder_costs_one_warning(tmp_path, run_increment, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("no folder can be made below a file")
    with (
        config.override(
            compilation_cache_dir=str(blocked / "cache"), persistent_cache_min_compile_time_secs=0.0
        ),
        caplog.at_level(logging.WARNING, "purax"),
    ):
        for amount in (1.0, 2.0, 3.0):
            run_increment(amount)
    (message,) = [record.getMessage() for record in caplog.records]
    assert str(blocked) in message and "PURAX_COMPILATION_CACHE_DIR" in message


def test_quick_compiles_are_not_kept(cache_folder, run_increment):
    with config.override(persistent_cache_min_compile_time_secs=1000.0):
        run_increment()
    assert counts() == (1, 0, 0) and not cache_folder.exists()


def test_the_cache_can_be_switched_off(cache_folder, run_increment):
    with config.override(enable_compilation_cache=False):
        run_increment()
        run_increment()
        assert disk_cache.folder() is None
        assert disk_cache.read(bytes(32)) is None and disk_cache.write(bytes(32), b"x") is False
    assert counts() == (2, 0, 0) and not cache_folder.exists()


def test_the_folder_follows_the_settings(tmp_path, monkeypatch):
    with config.override(enable_compilation_cache=True, compilation_cache_dir=None):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert disk_cache.folder() == str(tmp_path / "purax")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative/folder")  # which the specification tells to ignore
        assert disk_cache.folder() == str(Path.home() / ".cache" / "purax")
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert disk_cache.folder() == str(tmp_path / ".cache" / "purax")
        monkeypatch.setattr("os.path.expanduser", lambda path: path)  # a user without a home
        assert disk_cache.folder() is None
        monkeypatch.undo()
        monkeypatch.setenv("HOME", str(tmp_path))
    with config.override(enable_compilation_cache=True, compilation_cache_dir="~/programs"):
        assert disk_cache.folder() == str(tmp_path / "programs")


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_the_folder_is_bounded_and_forgets_what_is_not_used(cache_folder):
    payload = os.urandom(1000)  # does not compress
    with config.override(compilation_cache_max_size=3500):
        for number in range(3):
            assert disk_cache.write(key(number), payload)
            os.utime(cache_folder / (key(number).hex() + disk_cache.SUFFIX), (number + 1, number + 1))
        assert disk_cache.read(key(0)) == payload  # used now
        assert disk_cache.write(key(3), payload)
    assert [disk_cache.read(key(number)) is not None for number in range(4)] == [True, False, True, True]


def test_the_folder_is_bounded_although_few_writes_look_through_it(cache_folder, monkeypatch):
    """A look takes as long as there are files, and a program that is compiled must not wait for thousands of them."""
    looks, sizes = 0, []

    def evict(*args):
        nonlocal looks
        looks += 1
        original(*args)

    original = disk_cache.evict
    monkeypatch.setattr(disk_cache, "evict", evict)
    with config.override(compilation_cache_max_size=200_000):
        for number in range(600):
            assert disk_cache.write(hashlib.sha256(key(number)).digest(), os.urandom(1000))
            if number % 10 == 0:
                sizes.append(sum(path.stat().st_size for path in cache_folder.iterdir()))
    assert looks < 100
    assert 200_000 < max(sizes) < 250_000 and min(sizes[20:]) > 180_000


def test_what_is_larger_than_the_limit_is_not_kept(cache_folder):
    with config.override(compilation_cache_max_size=500):
        assert not disk_cache.write(key(1), os.urandom(1000))
    with config.override(compilation_cache_max_size=-1):
        assert all(disk_cache.write(key(number), os.urandom(1000)) for number in range(20))
    assert len(entries(cache_folder)) == 20


def test_left_over_temporary_files_go_and_those_of_others_stay(cache_folder, monkeypatch):
    """Only what a dead process of this machine left behind goes; foreign files are not looked at."""
    cache_folder.mkdir()
    alive = Path(private_files.temporary_path(str(cache_folder)))
    dead = Path(str(alive).replace(f"-{os.getpid()}-", "-4999999-"))
    elsewhere = Path(str(dead).replace(private_files._host(), "0" * 12))
    young = Path(str(dead).replace(".tmp", "1.tmp"))
    foreign = [cache_folder / name for name in ("notes.txt", "download.tmp", "write-a-b.tmp", "x.purax")]
    files = [dead, alive, elsewhere, young, *foreign]
    for path in files:
        path.write_bytes(b"x" * 5000)
        if path is not young:
            os.utime(path, (time.time() - 100_000,) * 2)
    with config.override(compilation_cache_max_size=2000):
        assert disk_cache.write(key(1), os.urandom(100))
    assert [path.exists() for path in files] == [False] + [True] * (len(files) - 1)
    os.utime(elsewhere, (time.time() - 1_000_000,) * 2)
    disk_cache.evict(str(cache_folder), 2000)
    assert not elsewhere.exists()


def test_the_key_depends_on_text_options_and_machine(increment_text, device, monkeypatch):
    def make(size=3, options=()):
        text = increment_text(size)
        return disk_cache.make_key(text, (device,), compiler._engine_options(text, (device,), options))

    plain = make()
    assert plain == make() and len(plain) == 32
    others = [make(4), make(options=(("xla_cpu_enable_fast_math", True),))]
    monkeypatch.setattr(disk_cache, "_cpu_features", lambda: "another processor")
    others.append(make())
    monkeypatch.setattr(disk_cache, "engine_build", lambda: "another jaxlib")
    others.append(make())
    assert len({plain, *others}) == 5


def test_the_key_depends_on_the_flags_of_the_environment(tmp_path, run_python):
    environment = {
        "PURAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    assert run_python(COMPILE, **environment) == "1 0 1"
    assert run_python(COMPILE, XLA_FLAGS="--xla_cpu_enable_fast_math=true", **environment) == "1 0 1"


def test_programs_with_callbacks_call_those_that_they_are_loaded_with(cache_folder, device):
    text = """func.func public @main(%x: tensor<f32>) -> tensor<f32> {
      %y = "stablehlo.custom_call"(%x) {call_target_name = "xla_ffi_python_cpu_callback",
        api_version = 4 : i32, backend_config = {index = 0 : ui64}} : (tensor<f32>) -> tensor<f32>
      return %y : tensor<f32> }"""
    aval = BufferType((), np.dtype(np.float32))
    results = []
    for amount in (1, 2, 3):
        callbacks = [lambda x, amount=amount: (np.asarray(x + np.float32(amount)),)]
        program = compiler.compile_program(text, [aval], (device,), callbacks=callbacks)
        for _ in range(2):
            results += (
                execute.to_numpy(program([execute.device_put(np.float32(5), device)])[0]).ravel().tolist()
            )
    assert results == [6, 6, 7, 7, 8, 8] and counts() == (1, 2, 1)


def test_callbacks_of_a_program_from_disk_raise_and_have_effects_as_ever(tmp_path, run_python):
    code = """
        import purax as px
        from purax.xla import compiler

        def host(x):
            if x > 2:
                raise KeyError("too large")
            return x * 2

        @px.jit
        def f(x):
            px.debug.callback(print, x)
            return px.pure_callback(host, px.ShapeDtypeStruct((), "float32"), x) + 1

        print(f(2.0))
        px.effects_barrier()
        try:
            f(3.0).block_until_ready()
        except KeyError as error:
            print(error.args)
        print(compiler.stats.disk_hits > 0)
        """
    environment = {
        "PURAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    first, second = ([*run_python(code, **environment).splitlines()] for _ in range(2))
    assert first[-1] == "False" and second[-1] == "True"
    assert sorted(first[:-1]) == sorted(second[:-1]) == ["('too large',)", "2.0", "3.0", "5.0"]


def test_lapack_kernels_are_there_for_a_program_from_disk(tmp_path, run_python):
    code = """
        import numpy as np
        from purax.xla import client, compiler, execute
        text = '''func.func public @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
          %y:2 = "stablehlo.custom_call"(%x) {call_target_name = "lapack_spotrf_ffi", api_version = 4 : i32,
            backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
            result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
            : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
          return %y#0 : tensor<2x2xf32> }'''
        device = client.devices("cpu")[0]
        aval = execute.BufferType((2, 2), np.dtype(np.float32))
        program = compiler.compile_program(text, [aval], (device,))
        x = execute.device_put(np.array([[4, 2], [2, 5]], np.float32), device)
        print(np.tril(execute.to_numpy(program([x])[0])).tolist(), compiler.stats.disk_hits)
        """
    environment = {
        "PURAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    outputs = [run_python(code, **environment) for _ in range(2)]
    assert outputs == ["[[2.0, 0.0], [1.0, 2.0]] 0", "[[2.0, 0.0], [1.0, 2.0]] 1"]
