"""`jax.linear_util`, in the little of it that libraries use: a function and what its transformations return."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = [
    "Store",
    "StoreException",
    "WrappedFun",
    "cache",
    "merge_linear_aux",
    "transformation",
    "transformation2",
    "transformation_with_aux",
    "transformation_with_aux2",
    "wrap_init",
]


class StoreException(Exception):
    """A store was read before, or filled after, it had a value."""


class Store:
    """A place that is filled once."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def store(self, value: Any) -> None:
        self._values[:] = [value]

    @property
    def val(self) -> Any:
        if not self._values:
            raise StoreException("the function has not been called yet")
        return self._values[0]

    def __call__(self) -> Any:
        return self.val


class WrappedFun:
    """A function that is being transformed.

    Args:
        f: the function.
        params: keyword arguments that it is called with.
    """

    def __init__(self, f: Callable, params: dict[str, Any] | None = None, debug_info: Any = None):
        self.f = f
        self.params = params or {}
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "function")

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self.f(*args, **self.params, **kwargs)

    __call__ = call_wrapped


def wrap_init(f: Callable, params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """Wraps a function.

    Args:
        f: the function.
        params: keyword arguments that it is called with.
        debug_info: where it comes from.
    """
    return WrappedFun(f, params, debug_info)


def transformation2(gen: Callable, fun: WrappedFun, *gen_static_args: Any) -> WrappedFun:
    """The function that calls `gen(function, *gen_static_args, *arguments)`."""
    return WrappedFun(functools.partial(gen, fun.call_wrapped, *gen_static_args), None, fun.debug_info)


def transformation_with_aux2(
    gen: Callable,
    fun: WrappedFun,
    *gen_static_args: Any,
    use_eq_store: bool = False,
    unk_names: bool = False,
) -> tuple[WrappedFun, Store]:
    """`transformation2` with a store that `gen` fills: `gen(function, store, *gen_static_args, *arguments)`.

    Of the two options jax's caches have need: a store here may be filled again.
    """
    store = Store()
    return WrappedFun(
        functools.partial(gen, fun.call_wrapped, store, *gen_static_args), None, fun.debug_info
    ), store


def transformation(gen: Callable) -> Callable:
    """A transformation written as a generator: it yields the arguments of the function, gets its result, and yields
    its own.
    """

    def transform(function: Callable, *args: Any, **kwargs: Any) -> Any:
        running = gen(*args, **kwargs)
        new_args, new_kwargs = next(running)
        return running.send(function(*new_args, **new_kwargs))

    return lambda fun, *fixed: transformation2(transform, fun, *fixed)


def transformation_with_aux(gen: Callable) -> Callable:
    """`transformation` for a generator that yields, at last, a pair; the second of it goes to a store."""

    def transform(function: Callable, store: Store, *args: Any, **kwargs: Any) -> Any:
        running = gen(*args, **kwargs)
        new_args, new_kwargs = next(running)
        result, extra = running.send(function(*new_args, **new_kwargs))
        store.store(extra)
        return result

    return lambda fun, *fixed: transformation_with_aux2(transform, fun, *fixed)


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """Remembers what `call` made of a wrapped function.

    Args:
        call: the function.
        explain: accepted, without effect: misses of `jit` explain themselves.
    """
    return functools.lru_cache(maxsize=4096)(call)


def merge_linear_aux(aux1: Store, aux2: Store) -> tuple[bool, Any]:
    """Which of two stores was filled, and what is in it; just one of them must be."""
    if bool(aux1._values) == bool(aux2._values):
        which = "both stores were" if aux1._values else "neither store was"
        raise StoreException(f"one store must be filled, but {which}")
    return (True, aux1.val) if aux1._values else (False, aux2.val)
