"""`purax doctor` tells what there is, names what is slow or missing with a remedy, and never fails itself."""

from __future__ import annotations

import os

import pytest

from purax.commands import doctor as module
from purax.commands.main import COMMANDS, main
from purax.config import config
from purax.xla import disk_cache, native


def report(capsys) -> tuple[int, str]:
    status = main(["doctor"])
    return status, capsys.readouterr().out


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    (path / "entry").write_bytes(b"x" * 2**20)
    with config.override(compilation_cache_dir=str(path)):
        yield path


def test_a_sound_installation(capsys, folder):
    _, said = report(capsys)
    assert "jaxlib" in said and "cpu:0" in said and "(default)" in said
    assert f"{folder}: 1 files, 1.0 MB" in said
    for title in module.SECTIONS:
        assert title in said


def test_flags_and_environment_are_listed(capsys, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    with config.override(debug_nans=True):
        status, said = report(capsys)
    assert status == 1 and "every result is waited for" in said and "device_count=8" in said


def test_native_code_that_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(native, "build", lambda: None)
    monkeypatch.setattr(
        module.importlib, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name))
    )
    status, said = report(capsys)
    assert status == 1 and "kernels" in said and "purax.core._bind" in said and "g++" in said


def test_a_cache_that_others_can_write(capsys, folder):
    folder.chmod(0o777)
    status, said = report(capsys)
    assert status == 1 and "can be written by other users" in said


def test_without_a_cache(capsys):
    with config.override(enable_compilation_cache=False):
        status, said = report(capsys)
    assert status == 1 and "every process compiles anew" in said
    with config.override(compilation_cache_dir=os.path.join(os.sep, "nowhere", "at", "all")):
        assert "made when the first program is kept" in report(capsys)[1]


def test_a_section_that_fails_is_a_finding(capsys, monkeypatch):
    monkeypatch.setattr(disk_cache, "folder", lambda: 1 / 0)
    status, said = report(capsys)
    assert status == 1 and "ZeroDivisionError" in said and "Flags" in said


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name, capsys):
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: purax {name}")


@pytest.mark.parametrize("name", ("devices", "doctor"))
def test_words_too_many_are_refused(name, capsys):
    assert main([name, "now"]) == 2
    assert capsys.readouterr().err.startswith(f"usage: purax {name}")
