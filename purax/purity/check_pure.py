"""`check_pure` and `assert_pure`: asks whether a function has side effects, without running it on data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from purax import errors
from purax.api.jit import JitFunction, eval_shape
from purax.config import config
from purax.interpreters.arguments import name_of, require_function
from purax.purity.captures import Captures
from purax.purity.findings import Report
from purax.purity.side_effects import Watch
from purax.purity.watcher import watched


def check_pure(fun: Callable) -> Callable[..., Report]:
    """Looks for side effects of a function.

    The function is traced once, with the types of the arguments; what it changes in containers, objects and variables
    outside is put back afterwards, what it prints or writes to files is not.

    Args:
        fun: the function.

    Returns:
        A function of the arguments of `fun` that returns a `Report`: `report.findings`, each with `kind`, `place`,
        `name` and `advice`, and `report.is_pure`. It prints well.

    >>> import purax as px, purax.numpy as jnp
    >>> seen = []
    >>> def f(x):
    ...     seen.append(x)
    ...     return jnp.sin(x)
    >>> report = px.check_pure(f)(1.0)
    >>> report.is_pure, [(found.kind, found.name) for found in report.findings]
    (False, [('leak', 'seen')])
    >>> px.check_pure(jnp.sin)(1.0)
    `sin` is pure, as far as it was traced
    """
    require_function(fun, "check_pure")
    inner = fun._function if isinstance(fun, JitFunction) else fun
    options = fun._options if isinstance(fun, JitFunction) else None

    @functools.wraps(inner)
    def check(*args: Any, **kwargs: Any) -> Report:
        watch = Watch("collect", Captures().examine(inner, args, kwargs, ()))

        def run(*traced: Any, **named: Any) -> Any:
            return watched(watch, inner, traced, named)

        functools.update_wrapper(run, inner)
        with config.override(purity="off"):
            if options is None:
                eval_shape(run, *args, **kwargs)
            else:
                JitFunction(run, options, shared=False).eval_shape(*args, **kwargs)
        return Report(name_of(fun), watch.findings)

    return check


def assert_pure(fun: Callable, *args: Any, **kwargs: Any) -> None:
    """Raises `ImpureFunctionError` with all findings if a call of the function has side effects; for test suites.

    Args:
        fun: the function.
        *args: arrays, `ShapeDtypeStruct`s, numbers or trees of them.
        **kwargs: likewise.

    >>> import purax as px, purax.numpy as jnp
    >>> px.assert_pure(jnp.tanh, jnp.ones(3))
    """
    report = check_pure(fun)(*args, **kwargs)
    if not report.is_pure:
        raise errors.ImpureFunctionError(str(report))
