"""Whatever the user's code raises, wherever purax calls it, reaches the user as itself, and nothing stays in effect."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.custom_batching import custom_vmap
from purax.experimental import io_callback
from purax.xla import callbacks

X = jnp.ones(2000)
LIKE_X = px.ShapeDtypeStruct((2000,), "float32")


class OwnBase(BaseException):
    """Of the user's, as KeyboardInterrupt is."""


class OwnError(Exception):
    """Of the user's."""


def places(fail: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """By name, calls in which `fail` is called."""
    yield from _in_callbacks(fail)
    yield from _in_functions(fail)
    yield from _in_rules(fail)
    yield from _in_objects(fail)


def _in_callbacks(fail: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    def ask(x: Any) -> Any:
        return px.pure_callback(fail, LIKE_X, x)

    def ask_one_by_one(x: Any) -> Any:
        return px.pure_callback(fail, px.ShapeDtypeStruct((), "float32"), x, vmap_method="sequential")

    def tell(ordered: bool) -> Callable[[Any], Any]:
        return lambda x: (px.debug.callback(fail, x, ordered=ordered), x + 1)[1]

    def wait(function: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: (np.asarray(function(X)), px.effects_barrier())

    yield "pure", wait(px.jit(ask))
    yield "pure, eager", wait(ask)
    yield "pure, vmap", wait(px.vmap(ask_one_by_one))
    yield "debug", wait(px.jit(tell(False)))
    yield "debug, ordered", wait(px.jit(tell(True)))
    yield "debug, eager", wait(tell(False))
    yield "io", wait(px.jit(lambda x: io_callback(fail, LIKE_X, x)))
    yield "io, ordered", wait(px.jit(lambda x: io_callback(fail, LIKE_X, x, ordered=True)))
    yield "in scan", wait(px.jit(lambda x: lax.scan(lambda c, _: (ask(c), None), x, None, length=3)[0]))
    yield "in while", wait(px.jit(lambda x: lax.while_loop(lambda c: c[0] < 5, ask, x)))
    yield "in cond", wait(px.jit(lambda x: lax.cond(x[0] > 0, ask, lambda x: x, x)))


def _in_functions(fail: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    for transformation in (px.jit, px.grad, px.vmap, px.make_jaxpr, px.checkpoint, px.jacfwd):
        yield transformation.__name__, lambda t=transformation: t(fail)(X)
    yield "jvp", lambda: px.jvp(fail, (X,), (X,))
    yield "linearize", lambda: px.linearize(fail, X)
    yield "eval_shape", lambda: px.eval_shape(fail, X)
    yield "nested", lambda: px.jit(px.grad(px.vmap(px.checkpoint(fail))))(X)
    yield "scan", lambda: lax.scan(fail, X, None, length=3)
    yield "while", lambda: lax.while_loop(lambda c: True, fail, X)
    yield "while condition", lambda: lax.while_loop(fail, lambda c: c, X)
    yield "cond", lambda: px.jit(lambda x: lax.cond(x[0] > 0, fail, lambda x: x, x))(X)
    yield "if", lambda: px.jit(lambda x: fail(x) if x[0] > 0 else x)(X)
    yield "tree.map", lambda: px.tree.map(fail, [1, 2])

    def loop(x: Any) -> Any:
        while x[0] < 3:
            x = fail(x)
        return x

    yield "while statement", lambda: px.jit(loop)(X)

    def in_contexts() -> None:
        with px.disable_jit(), px.named_scope("part"), px.default_device(px.devices()[0]):
            px.jit(fail)(X)

    yield "contexts", in_contexts


def _in_rules(fail: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    def with_vjp(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[[Any], Any]:
        function = px.custom_vjp(lambda x: x)
        function.defvjp(forward, backward)
        return lambda x: function(x).sum()

    with_jvp, with_batch = px.custom_jvp(lambda x: x), custom_vmap(lambda x: x)
    with_jvp.defjvp(fail)
    with_batch.def_vmap(fail)
    backward, forward = with_vjp(lambda x: (x, x), fail), with_vjp(fail, lambda x, g: (g,))
    yield "vjp backward", lambda: px.grad(backward)(X)
    yield "vjp backward, compiled", lambda: px.jit(px.grad(backward))(X)
    yield "vjp forward", lambda: px.grad(forward)(X)
    yield "jvp rule", lambda: px.jvp(with_jvp, (X,), (X,))
    yield "jvp rule, compiled", lambda: px.jit(px.grad(lambda x: with_jvp(x).sum()))(X)
    yield "vmap rule", lambda: px.vmap(with_batch)(X)


def _in_objects(fail: Callable[..., Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    class Arraylike:
        __jax_array__ = __array__ = fail

    class Unhashable:
        __hash__ = fail

    class Incomparable:
        __eq__ = fail
        __hash__ = lambda self: 1  # noqa: E731

    class Closed:
        """Cannot be flattened."""

    class Open:
        """Cannot be unflattened."""

    px.tree_util.register_pytree_node(Closed, fail, lambda _, children: Closed())
    px.tree_util.register_pytree_node(Open, lambda _: ((1.0,), None), fail)
    static = px.jit(lambda key, x: x, static_argnums=0)
    yield "__jax_array__", lambda: jnp.asarray(Arraylike())
    yield "__jax_array__ of an operand", lambda: X + Arraylike()
    yield "__jax_array__ in a list", lambda: jnp.array([Arraylike(), 1.0])
    yield "__jax_array__ in a trace", lambda: px.jit(lambda x: x + jnp.asarray(Arraylike()))(X)
    yield "__hash__", lambda: static(Unhashable(), X)
    yield "__eq__", lambda: (static(Incomparable(), X), static(Incomparable(), X))
    yield "flatten", lambda: px.jit(lambda _: 1.0)(Closed())
    yield "unflatten", lambda: px.jit(lambda _: 1.0)(Open())


NAMES = [name for name, _ in places(lambda *_: None)]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OwnBase, OwnError])
def test_an_exception_of_the_user_is_raised_as_itself(kind):
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise kind("mine")

    _try_all(fail, kind)


def test_an_exception_of_a_signal_handler_is_raised_as_itself():
    """The handler runs in the midst of the user's function, or after it if that runs in another thread."""

    def disturb(*args: Any, **kwargs: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.01)
        raise OwnError("the handler did not run")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _try_all(disturb, KeyboardInterrupt, only=[n for n in NAMES if n not in _on_other_threads()])
    finally:
        signal.signal(signal.SIGINT, before)


def _on_other_threads() -> set[str]:
    return {name for name, _ in _in_callbacks(lambda *_: None)}


def _try_all(fail: Callable[..., Any], kind: type[BaseException], only: list[str] = NAMES) -> None:
    for name, call in places(fail):
        if name not in only:
            continue
        with pytest.raises(kind) as caught:
            call()
        assert str(caught.value) in ("mine", ""), name
        assert callbacks.inside.depth == 0, name
        px.effects_barrier()  # nothing is raised twice
        assert float(px.jit(lambda x: x.sum() + 1)(X)) == 2001, name
