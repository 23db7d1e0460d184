"""The user's lines: which frames are the user's, locations in errors."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
from purax.core import source


def test_the_users_frame_is_the_innermost_outside_of_purax():
    frame = source.user_frame()
    assert frame.f_code.co_filename == __file__
    location = source.user_location()
    assert (
        location.file == __file__
        and location.function == "test_the_users_frame_is_the_innermost_outside_of_purax"
    )
    assert "source.user_location()" in location.text
    assert source.code_is_internal(px.jit.__code__) and not source.code_is_internal(frame.f_code)


def test_an_error_gets_its_location_once():
    error = ValueError("problem")
    assert source.with_location(error) is error
    source.with_location(error)
    assert str(error).count(f"at {__file__}:") == 1 and str(error).startswith("problem")
    other = source.with_location(ValueError("x"), source.Location("file.py", 3, "f"))
    assert str(other) == "x\n  at file.py:3 (f)"


def test_errors_without_a_text_are_left_alone():
    for error in (ValueError(), ValueError(3)):
        args = error.args
        assert source.with_location(error).args == args


def raised(f):
    with pytest.raises(Exception) as error:  # noqa: B017
        f()
    return error.value


def test_errors_inside_of_a_program_name_the_line_that_recorded_the_equation():
    def loss(x):
        y = px.pure_callback(np.sin, x, x)  # the line
        return px.lax.while_loop(lambda v: v < 3, lambda v: v + y, x)

    error = raised(lambda: px.grad(px.jit(loss))(1.0))
    assert "callback" in str(error) and "# the line" in str(error)


def test_scopes_nest_and_end():
    assert source.names.scope == ""
    with px.named_scope("a"), px.named_scope("b"):
        assert source.names.scope == "a/b"
    assert source.names.scope == ""
    with pytest.raises(ZeroDivisionError), px.named_scope("a"):
        raise ZeroDivisionError
    assert source.names.scope == ""
