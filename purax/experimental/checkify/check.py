"""`check`: an assertion on traced values. It takes effect under `checkify`, and where values are concrete."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import source
from purax.core.dtypes import is_extended
from purax.core.effects import Effect
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.core.trace import Tracer
from purax.debug.printing import check_format
from purax.errors import shown
from purax.experimental.checkify.errors import Check, Error, FailedCheckError, JaxRuntimeError
from purax.interpreters.arguments import to_array
from purax.numpy import argmax, moveaxis, not_equal, take, where
from purax.tree.registry import tree_flatten

_EFFECT = frozenset((Effect("Check", ordered=False, repeatable=True),))


class CheckPrimitive(Primitive):
    """Takes the number of a check that failed (0 for none) and the values that the messages show.

    Params:
        checks: the checks, numbered from 1; the values of each follow one another.
        debug: whether it is left out where it is not under `checkify`.
    """

    name = "check"
    multiple_results = True
    runs_itself = True

    def infer(self, code, *values, checks, debug):
        return []

    def run(self, code, *values, checks, debug):
        if not debug and int(code):
            check = checks[int(code) - 1]
            start = sum(c.count for c in checks[: int(code) - 1])
            raise JaxRuntimeError(check.text(values[start : start + check.count]))
        return []

    def lower(self, builder, code, *values, checks, debug):
        if not debug:
            raise ValueError(
                "checkify.check was compiled without checkify: wrap the function before jit, "
                "`error, y = jit(checkify.checkify(f))(x)`, or use `purax.error_if`, which raises out of "
                "compiled programs"
            )
        return []

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), []

    def batch(self, operands, batch_axes, **params):
        code, *values = operands
        code_axis, *axes = batch_axes
        if code_axis is None:  # the first example stands for all
            position = 0
        else:
            failed = moveaxis(code, code_axis, 0)
            position = argmax(not_equal(failed, 0))
            code = take(failed, position)
        shown = [
            x if a is None else take(moveaxis(x, a, 0), position, axis=0)
            for x, a in zip(values, axes, strict=True)
        ]
        return self.bind(code, *shown, **params), []

    def guarded(self, condition, operands, **params):
        code, *values = operands
        return self.bind(where(condition, code, np.zeros((), np.int32)), *values, **params)

    def effects(self, **params):
        return _EFFECT


check_p = CheckPrimitive()


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Checks a condition on traced values.

    Args:
        pred: what should hold, a boolean scalar.
        msg: what the error says if it does not, with places for the arguments as for `str.format`.
        *fmt_args: arrays to show, by position.
        debug: whether the check is left out where the function is not under `checkify`.
        **fmt_kwargs: arrays to show, by name.

    Under `checkify` a failed check becomes the error that it returns; concrete values raise at once; to be compiled, a
    function with checks must go through `checkify` first.

    >>> import purax as px
    >>> from purax.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x != 0, "division by {x}", x=x)
    ...     return 1 / x
    >>> error, y = px.jit(checkify.checkify(f))(0.0)
    >>> print(error.get())  # doctest: +ELLIPSIS
    division by 0.0 (`check` failed)
      at ...
    """
    if not isinstance(msg, str):
        raise located(
            TypeError, f"checkify.check needs a message, got {shown(msg)} of type {type(msg).__name__}"
        )
    check_format(msg, fmt_args, fmt_kwargs, "checkify.check")
    condition = to_array(pred)
    if condition.aval.shape != () or condition.aval.dtype != np.bool_:
        raise located(
            TypeError,
            f"checkify.check needs a boolean scalar, got {condition.aval.str_short()}; reduce it with `.all()`",
        )
    leaves, tree = tree_flatten((fmt_args, fmt_kwargs))
    try:
        values = [to_array(x) for x in leaves]
    except TypeError as error:
        raise located(TypeError, f"checkify.check shows arrays and numbers: {error}") from None
    wrap = [x.aval.dtype if is_extended(x.aval.dtype) else None for x in values]
    values = [x if dtype is None else dtype.unwrap(x) for x, dtype in zip(values, wrap, strict=True)]
    one = Check(FailedCheckError, msg, tree, len(values), source.user_location(), wrap)
    code = where(condition, np.zeros((), np.int32), np.ones((), np.int32))
    check_p.bind(code, *values, checks=(one,), debug=bool(debug))


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """`check`, left out where the function is not under `checkify`; the arguments are those of `check`."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises the error that a function under `checkify` returned; inside of another one, it becomes an error of that.

    >>> from purax.experimental import checkify
    >>> error, _ = checkify.checkify(lambda x: x + 1)(1.0)
    >>> checkify.check_error(error)
    """
    if not isinstance(error, Error):
        raise located(TypeError, f"check_error needs an error of checkify, got {shown(error)}")
    checks = tuple(error._ledger.checks)
    code = error._code
    if not checks:
        return
    if isinstance(code, Tracer):
        if code.aval.shape != ():
            raise located(ValueError, "check_error needs the error of one call, not of a batch")
        check_p.bind(code, *error._values, checks=checks, debug=False)
    else:
        error.throw()
