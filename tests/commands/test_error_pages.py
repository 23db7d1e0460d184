"""Every class of errors has a page in English and in Chinese; its mistake raises that class, and its mend runs."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import pytest

import purax as px
from purax import errors
from purax.commands import error_pages

NAMES = sorted(errors.__all__)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
# Pages without code to run: nothing raises the class, or only several processes do.
WITHOUT_CODE = {
    "CuSparseEfficiencyWarning",
    "ProcessFailureError",
    "ProcessLostError",
    "ProgramMismatchError",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
}


def run(code: str, name: str, folder) -> None:
    file = folder / f"{name}.py"
    file.write_text(code)
    exec(compile(code, str(file), "exec"), {"__name__": name, "__file__": str(file)})


def test_each_class_has_a_page_and_each_page_a_class():
    assert sorted(error_pages.names()) == NAMES
    assert all(error_pages.text(name, "zh") != error_pages.text(name) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_the_mistake_and_its_mend(name, tmp_path):
    kind = getattr(errors, name)
    english, chinese = (BLOCK.findall(error_pages.text(name, language)) for language in ("en", "zh"))
    assert english == chinese
    assert (not english) == (name in WITHOUT_CODE)
    if english:
        mistake, mend = english
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.ImpureFunctionWarning)
            with pytest.raises(kind):
                run(mistake, f"{name}_mistake", tmp_path)
        run(mend, f"{name}_mend", tmp_path)


def test_a_message_names_its_page():
    with pytest.raises(errors.IncompatibleShapesError) as caught:
        px.numpy.ones(3) + px.numpy.ones(4)
    command = str(caught.value).splitlines()[-1].partition("more: purax ")[2].split()
    done = subprocess.run([sys.executable, "-m", "purax", *command], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("# IncompatibleShapesError")


def test_help_for_what_does_not_exist_says_what_there_is():
    done = subprocess.run([sys.executable, "-m", "purax", "help", "ShapError"], capture_output=True, text=True)
    assert done.returncode == 2 and "did you mean 'ShapeError'" in done.stderr
