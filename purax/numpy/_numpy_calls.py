"""NumPy's functions called with traced values: `np.exp(x)`, `np.linalg.norm(x)` and `np_array * x` are done by ours.

`install` gives tracers `__array_ufunc__` and `__array_function__`. A function of NumPy, or a ufunc of `scipy.special`,
is handed to the one of the same name here, each argument to the parameter of its name. A function without a
counterpart runs as NumPy wrote it: it works if shapes and dtypes are enough, and is refused when it asks for a value.
What would write a traced value into memory of NumPy (`out=`, `np_array += x`, `np.add.at`) raises.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from purax import errors
from purax.core import ways_out
from purax.core.source import located
from purax.core.trace import Tracer
from purax.numpy._creation.creation import asarray
from purax.numpy._elementwise.ufunc_object import ufunc as Ufunc

_NUMPY_UFUNC = (np.ndarray.__array_ufunc__, getattr(np.generic, "__array_ufunc__", None))
_IGNORED: dict[str, Any] = {  # options of ufuncs, with the values that change nothing
    "where": True,
    "casting": "same_kind",
    "order": "K",
    "subok": True,
    "dtype": None,
    "signature": None,
    "initial": np._NoValue,
}
_RENAMED = {"a_min": "min", "a_max": "max"}  # of `clip`, which has both names for each
_modules: dict[str, Callable[[], ModuleType]] = {}
_ufuncs: dict[np.ufunc, Callable[..., Any]] = {}


def install(namespace: ModuleType) -> None:
    """Hands calls of NumPy's functions with traced values to those of `purax.numpy`."""
    for path in ("", ".linalg", ".fft"):
        install_module(f"numpy{path}", functools.partial(sys.modules.__getitem__, namespace.__name__ + path))
    unnamed = np._core.umath  # type: ignore[attr-defined]  # `ndarray.clip` calls a ufunc that has no public name
    for own in (np, unnamed):
        _add_ufuncs(vars(own), namespace)
    Tracer.__array_ufunc__ = call_ufunc  # type: ignore[attr-defined]
    Tracer.__array_function__ = call_function  # type: ignore[attr-defined]
    ways_out.install_counterparts(counterpart_name)


def install_module(name: str, load: Callable[[], ModuleType]) -> None:
    """Says where the counterparts of the functions of a module are, such as those of `scipy.special`."""
    _modules[name] = load


def _add_ufuncs(names: Mapping[str, Any], namespace: ModuleType) -> None:
    for name, value in names.items():
        if isinstance(value, np.ufunc) and callable(getattr(namespace, name, None)):
            _ufuncs.setdefault(value, getattr(namespace, name))


# --- ufuncs


def call_ufunc(self: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
    """`Tracer.__array_ufunc__`: what `ufunc(*inputs, **options)`, or a method such as `ufunc.reduce`, gives."""
    for x in inputs:
        if getattr(type(x), "__array_ufunc__", call_ufunc) not in (call_ufunc, *_NUMPY_UFUNC):
            return NotImplemented  # a class that is neither NumPy's nor ours has a say
    function = _ufuncs.get(ufunc) or _library_ufunc(ufunc)
    inputs = tuple([asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs])
    if function is not None and method == "__call__" and not options:
        return function(*inputs)
    name = _ufunc_name(ufunc, method)
    options = _kept_options(name, options)
    if method == "at":
        _refuse_writing(name, f"x = jnp.{ufunc.__name__}.at(x, ..., inplace=False)")
    if function is None:
        _refuse(name, "has no counterpart in purax", "Write it with functions of `purax.numpy`.")
    if method == "__call__":
        unknown = options.keys() - _parameters(function).keys()
        if unknown:
            _refuse_options(name, unknown, function)
        return function(*inputs, **options)
    methods = getattr(function, "ufunc", None)
    if methods is None:
        methods = Ufunc(function, ufunc.nin, ufunc.nout, identity=ufunc.identity, call=function)
    return getattr(methods, method)(*inputs, **options)


def _kept_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a ufunc that say something."""
    _refuse_out(name, options.pop("out", None))
    return {key: x for key, x in options.items() if key not in _IGNORED or x is not _IGNORED[key]}


def _library_ufunc(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """The counterpart of a ufunc of another library, such as `scipy.special`."""
    for name, load in _modules.items():
        library = sys.modules.get(name)
        if library is not None and getattr(library, ufunc.__name__, None) is ufunc:
            found = getattr(load(), ufunc.__name__, None)
            if found is not None:
                _ufuncs[ufunc] = found
            return found
    return None


def _ufunc_name(ufunc: np.ufunc, method: str) -> str:
    library = next((n for n in _modules if getattr(sys.modules.get(n), ufunc.__name__, None) is ufunc), None)
    name = f"{library}.{ufunc.__name__}" if library else ufunc.__name__
    return name if method == "__call__" else f"{name}.{method}"


# --- functions


def call_function(self: Tracer, function: Any, types: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`Tracer.__array_function__`: what a function of NumPy gives."""
    if not {kind.__array_function__ for kind in types} <= {call_function, np.ndarray.__array_function__}:
        return NotImplemented  # a class that is neither NumPy's nor ours has a say
    own = _counterpart(function)
    if own is None:
        return function._implementation(*args, **kwargs)
    if "inplace" in _parameters(own):
        _refuse_writing(_function_name(function), f"x = jnp.{own.__name__}(x, ..., inplace=False)")
    positional, named = _translated(function, own, args, kwargs)
    return own(*positional, **named)


@functools.cache
def _counterpart(function: Any) -> Callable[..., Any] | None:
    load = _modules.get(function.__module__)
    own = None if load is None else getattr(load(), function.__name__, None)
    return own if own is not function else None


@functools.cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    return _signature(function).parameters


def _translated(
    function: Any, own: Any, args: tuple, kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call of `function` as those of `own`: by name, required ones of other names by place."""
    try:
        signature = _signature(function)
    except ValueError:  # as of some that are written in C
        _refuse_out(_function_name(function), kwargs.get("out"))
        return list(args), kwargs
    theirs, ours = signature.parameters, _parameters(own)
    places = list(ours)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in signature.bind(*args, **kwargs).arguments.items():
        kind = theirs[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
            continue
        if kind is inspect.Parameter.VAR_POSITIONAL:
            annotation = ours[name].annotation if name in ours else None
            positional.extend([_as_array_like(x, annotation) for x in value])
            continue
        if name == "out":
            _refuse_out(_function_name(function), value)
            continue
        target = _RENAMED.get(name, name)
        if target not in ours and theirs[name].default is inspect.Parameter.empty:
            target = places[list(theirs).index(name)]
        if target not in ours:
            if value is not theirs[name].default:
                _refuse_options(_function_name(function), {name}, own)
            continue
        value = _as_array_like(value, ours[target].annotation)
        if (
            places.index(target) == len(positional)
            and ours[target].kind is not inspect.Parameter.KEYWORD_ONLY
        ):
            positional.append(value)
        else:
            named[target] = value
    return positional, {name: value for name, value in named.items() if value is not np._NoValue}


def _as_array_like(value: Any, annotation: Any) -> Any:
    """An argument with the lists of numbers in it, which NumPy takes for arrays, as arrays."""
    if not isinstance(value, (list, tuple)):
        return value
    if str(annotation).startswith("ArrayLike"):
        return asarray(value)
    if "Sequence[ArrayLike]" in str(annotation):
        return [asarray(x) if isinstance(x, (list, tuple)) else x for x in value]
    return value


def _function_name(function: Any) -> str:
    return f"{function.__module__}.{function.__name__}"


# --- what is refused


def counterpart_name(module: str, name: str) -> str | None:
    """The name of the function of purax that does what `name` of `module` does, or None."""
    if module in ("math", "cmath", "statistics", "operator", "builtins"):
        homes: tuple[str, ...] = ("numpy", "scipy.special") if module != "builtins" else ()
    else:
        homes = (module,)
    for home in homes:
        load = _modules.get(home)
        if load is not None and callable(getattr(load(), name, None)):
            return f"purax.{home}.{name}"
    return None


def _refuse_writing(name: str, instead: str) -> NoReturn:
    _refuse(name, "writes into its first argument", f"Arrays of purax are immutable: write `{instead}`.")


def _refuse_out(name: str, out: Any) -> None:
    if out is not None and any([x is not None for x in (out if isinstance(out, tuple) else (out,))]):
        _refuse(
            name,
            "would write a traced value into an array of NumPy",
            "Use the result instead of `out=`, and write `a = a + x` instead of `a += x`.",
        )


def _refuse_options(name: str, unknown: Any, own: Any) -> NoReturn:
    shown = ", ".join(f"`{option}=`" for option in sorted(unknown))
    _refuse(
        f"{name} with {shown}",
        "has no counterpart in purax",
        f"Call it without {shown}, or write `purax.numpy.{own.__name__}` with the arguments that it takes.",
    )


def _refuse(name: str, problem: str, way_out: str) -> NoReturn:
    raise located(
        errors.TracerArrayConversionError, f"`{name}` {problem}: an argument is traced.\n  {way_out}"
    )
