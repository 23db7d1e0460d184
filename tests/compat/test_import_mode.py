"""The ways into the mode in which `import jax` gives purax, and the ways out of it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from purax.commands.main import USAGE, main
from purax.compat import is_installed
from purax.compat.settings import WITHOUT_MEANING, settings
from purax.compat.table import MODULES, OLDER_NAMES
from purax.config import config

ROOT = Path(__file__).parents[2]
WHICH = "import jax; print(jax.__name__, type(jax).__name__)"


def run(
    *words: str, cwd: Path | None = None, path: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs Python with purax on its path."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT)))), **variables}
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=120)


def test_the_tests_themselves_are_not_in_the_mode():
    assert not is_installed()


def test_an_import_switches_the_mode_on():
    done = run("-c", f"import purax.compat.jax, purax.compat.jax; {WHICH}")
    assert done.stdout == "jax Facade\n", done.stderr


def test_what_libraries_ask_of_the_insides_changes_with_them():
    code = (
        "import purax.compat.jax, jax; from jax._src import xla_bridge as bridge\n"
        "print(bridge._backends, bridge.backends_are_initialized())\n"
        "jax.devices(); print(list(bridge._backends), bridge.backends_are_initialized())\n"
        "print(jax.jit(len), type(jax.jit(len)).__name__)"
    )
    assert (
        run("-c", code).stdout
        == "{} False\n['cpu'] True\n<PjitFunction of <built-in function len>> PjitFunction\n"
    )


def test_importing_purax_alone_does_not():
    done = run("-c", "import purax, sys; print(any(name.startswith('purax.compat') for name in sys.modules))")
    assert done.stdout == "False\n", done.stderr


def test_a_jax_that_was_imported_before_is_refused():
    if importlib.util.find_spec("jax") is None:
        pytest.skip("jax is not installed")
    done = run("-c", "import jax\nimport purax.compat.jax")
    assert done.returncode == 1
    assert "ImportError: purax cannot stand in for jax in this process" in done.stderr
    assert "purax run" in done.stderr


def test_a_script_gets_its_arguments_its_folder_and_its_exit_status(tmp_path):
    (tmp_path / "neighbour.py").write_text("value = 7")
    (tmp_path / "script.py").write_text(
        "import sys, atexit, jax, neighbour\n"
        "print(sys.argv, __name__, __file__, neighbour.value, jax.numpy.arange(2))\n"
        "atexit.register(lambda: print('end', jax is not None))\n"
        "sys.exit(3)\n"
    )
    done = run("-m", "purax", "run", str(tmp_path / "script.py"), "--flag", "x")
    assert done.returncode == 3, done.stderr
    name = str(tmp_path / "script.py")
    assert done.stdout == f"{[name, '--flag', 'x']} __main__ {name} 7 [0 1]\nend True\n"


def test_an_error_of_the_script_shows_its_own_lines_only(tmp_path):
    (tmp_path / "script.py").write_text("import jax\n\ndef f():\n    return jax.lax.no_such_name\n\nf()\n")
    done = run("-m", "purax", "run", "script.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "`jax.lax.no_such_name` is missing in purax" in done.stderr
    assert "commands" not in done.stderr and "facade" not in done.stderr


def test_modules_packages_and_code_run_too(tmp_path):
    (tmp_path / "tool.py").write_text(
        "import jax, sys; print(__spec__.name, type(jax).__name__, sys.argv[1:])"
    )
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(
        "from package import __name__ as name; import jax; print(name, __package__)"
    )
    assert run("-m", "purax", "run", "-m", "tool", "a", cwd=tmp_path).stdout == "tool Facade ['a']\n"
    assert run("-m", "purax", "run", "-m", "package", cwd=tmp_path).stdout == "package package\n"
    assert run("-m", "purax", "run", "-c", f"{WHICH}; import sys; print(sys.argv)", "b").stdout == (
        "jax Facade\n['-c', 'b']\n"
    )
    timed = "import jax; jax.jit(lambda x: x * 2)(1.0); raise SystemExit(3)"
    done = run("-m", "purax", "run", "--timings", "-c", timed)
    assert done.returncode == 3 and "1 program made in" in done.stderr and "tracing" in done.stderr


def test_mistakes_on_the_command_line_are_explained(capsys):
    assert main(["--help"]) == 0 and main(["--version"]) == 0
    said = capsys.readouterr().out
    assert USAGE in said and "the interface of jax 0.10.2" in said
    for words, problem in (
        ([], "nothing to do"),
        (["run"], "nothing to run"),
        (["run", "--fast", "x.py"], "unknown option '--fast'"),
        (["walk", "x"], "unknown command 'walk'"),
        (["device"], "did you mean 'devices'"),
        (["run", "-m"], "-m needs an argument"),
    ):
        assert main(words) == 2
        assert problem in capsys.readouterr().err
    assert not is_installed()
    done = run("-m", "purax", "run", "no_such_file.py")
    assert (done.returncode, done.stderr) == (
        2,
        "purax: cannot open 'no_such_file.py': No such file or directory\n",
    )
    done = run("-m", "purax", "run", "-m", "no_such_module")
    assert (done.returncode, done.stderr) == (1, "purax: no module named no_such_module\n")


def test_pytest_runs_tests_on_purax(tmp_path):
    (tmp_path / "conftest.py").write_text("import jax\nassert type(jax).__name__ == 'Facade'\n")
    (tmp_path / "test_it.py").write_text(
        "import jax\n\ndef test_it():\n    assert jax.numpy.arange(3).sum() == 3\n"
    )
    done = run(
        "-m", "pytest", "-p", "purax.compat.pytest", "-p", "no:cacheprovider", str(tmp_path), cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout
    assert "jax: 0.10.2, provided by purax" in done.stdout and "1 passed" in done.stdout


def test_another_sitecustomize_of_the_user_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WHICH!r}], check=True)"
    done = run("-m", "purax", "run", "-c", code, path=str(tmp_path))
    assert done.stdout == "mine\nmine\njax Facade\n", done.stderr


def test_every_flag_of_jax_is_known():
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2":
        pytest.skip(f"compared with jax 0.10.2, this is {jax.__version__}")
    assert not {name for name in jax.config.values if name not in settings.values}


def test_flags_without_effect_say_so_once(caplog):
    with caplog.at_level("INFO", "purax"), settings.override("jax_use_magma", "off"):
        settings.update("jax_use_magma", "on")
        assert settings.jax_use_magma == "on"
    assert settings.jax_use_magma == WITHOUT_MEANING["jax_use_magma"]
    assert [line for line in caplog.messages if "jax_use_magma" in line] == [
        "jax.config.jax_use_magma = 'off' is remembered, but purax has nothing that it would change"
    ]


def test_flags_of_jax_that_are_another_one_of_purax():
    before = config.debug_nans
    try:
        settings.update("jax_error_checking_behavior_nan", "raise")
        assert config.debug_nans
        settings.update("jax_error_checking_behavior_nan", "ignore")
        assert not config.debug_nans
    finally:
        config.update("debug_nans", before)


def test_flags_that_purax_has_are_not_shadowed():
    assert not set(WITHOUT_MEANING) & {f"jax_{name}" for name in config.flags}


def test_the_table_holds_the_parent_of_every_module_and_older_name():
    for name in (*MODULES, *OLDER_NAMES):
        parent = name.rpartition(".")[0]
        assert name == "jax" or parent in MODULES, name
