"""Transformations of small functions run without jit: what tracing, differentiating and batching cost per call.

Control flow is called with fresh lambdas each time, as users write it in eager code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.data import integers, normal
from bench.measure import time_rows
from bench.models import mlp_loss, mlp_loss_autograd, mlp_loss_torch, mlp_parameters
from bench.peers import leaves, map_leaves
from bench.row import Bar, Builder, Group, bar, like_jax

group = Group("transforms", "grad, vmap, control flow without jit, small arrays", time_rows)

GRADIENT = (bar(0.04, "jax", "base"), bar(1.0, "torch", "base"))
FORWARD = (bar(0.125, "jax", "base"), bar(0.12, "jax"))
CONTROL = (bar(0.005, "jax"),)


def transformed(name: str, bars: tuple[Bar, ...], **peers: Builder) -> Callable[[Builder], Builder]:
    """Register a builder for purax and jax, with other builders by label (`torch_autograd` means `torch.autograd`)."""

    def register(build: Builder) -> Builder:
        builders = like_jax(build) | {label.replace("_", "."): own for label, own in peers.items()}
        group.add(name, builders, size=4, smoke_size=4, force="last", bars=bars, rtol=1e-4)
        return build

    return register


# The small loss of two matrix products' worth of work: sum(tanh(x @ w) ** 2).


def small_loss(ops: Any, w: Any) -> Callable[[Any], Any]:
    return lambda x: ops.sum(ops.tanh(x @ w) ** 2)


def inputs(space: Any, size: int) -> tuple[Any, Any]:
    return space.array(normal(size, seed=1)), space.array(normal(size, size, seed=2))


def torch_function(transform: str) -> Builder:
    def build(space: Any, size: int) -> Callable[[], Any]:
        x, w = inputs(space, size)
        loss, func = small_loss(space.torch, w), space.torch.func
        return lambda: getattr(func, transform)(loss)(x)

    return build


def torch_autograd(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    x.requires_grad_()
    loss, grad = small_loss(space.torch, w), space.torch.autograd.grad
    return lambda: grad(loss(x), x)[0]


def torch_backward(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    x.requires_grad_()
    loss, grad = small_loss(space.torch, w), space.torch.autograd.grad

    def run() -> Any:
        value = loss(x)
        return grad(value, x)[0], value

    return run


def autograd_function(transform: str) -> Builder:
    def build(space: Any, size: int) -> Callable[[], Any]:
        import autograd

        x, w = inputs(space, size)
        loss = small_loss(space.ops, w)
        return lambda: getattr(autograd, transform)(loss)(x)

    return build


def autograd_value_and_grad(space: Any, size: int) -> Callable[[], Any]:
    run = autograd_function("value_and_grad")(space, size)
    return lambda: run()[::-1]


@transformed(
    "grad",
    GRADIENT,
    torch=torch_function("grad"),
    torch_autograd=torch_autograd,
    autograd=autograd_function("grad"),
)
def gradient(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    loss, grad = small_loss(space.jnp, w), space.px.grad
    return lambda: grad(loss)(x)


@transformed("grad, transformed once", GRADIENT[:1])
def gradient_kept(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    transformed_loss = space.px.grad(small_loss(space.jnp, w))
    return lambda: transformed_loss(x)


@transformed(
    "value_and_grad",
    GRADIENT,
    torch=torch_function("grad_and_value"),
    torch_autograd=torch_backward,
    autograd=autograd_value_and_grad,
)
def value_and_gradient(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    loss, value_and_grad = small_loss(space.jnp, w), space.px.value_and_grad
    # The pair is swapped to the order that torch.func.grad_and_value has.
    return lambda: value_and_grad(loss)(x)[::-1]


def torch_jvp(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    loss, jvp = small_loss(space.torch, w), space.torch.func.jvp
    return lambda: jvp(loss, (x,), (x,))


@transformed("jvp", FORWARD, torch=torch_jvp)
def forward_mode(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    loss, jvp = small_loss(space.jnp, w), space.px.jvp
    return lambda: jvp(loss, (x,), (x,))


def torch_vmap(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    torch = space.torch
    return lambda: torch.vmap(torch.dot, in_dims=(None, 0))(x, w)


@transformed("vmap(dot)", FORWARD, torch=torch_vmap)
def vectorized(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    vmap, dot = space.px.vmap, space.jnp.dot
    return lambda: vmap(dot, in_axes=(None, 0))(x, w)


def torch_vmap_grad(space: Any, size: int) -> Callable[[], Any]:
    _, w = inputs(space, size)
    loss, torch = small_loss(space.torch, w), space.torch
    return lambda: torch.vmap(torch.func.grad(loss))(w)


@transformed("vmap(grad)", FORWARD, torch=torch_vmap_grad)
def gradient_per_example(space: Any, size: int) -> Callable[[], Any]:
    _, w = inputs(space, size)
    loss, px = small_loss(space.jnp, w), space.px
    return lambda: px.vmap(px.grad(loss))(w)


@transformed("grad(grad)", GRADIENT[:1])
def second_derivative(space: Any, size: int) -> Callable[[], Any]:
    grad, jnp = space.px.grad, space.jnp
    return lambda: grad(grad(lambda x: jnp.sin(x) * x))(0.5)


@transformed("hessian", FORWARD, torch=torch_function("hessian"), autograd=autograd_function("hessian"))
def second_derivatives(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    loss, hessian = small_loss(space.jnp, w), space.px.hessian
    return lambda: hessian(loss)(x)


@transformed("jacrev", FORWARD, torch=lambda space, size: torch_jacobian(space, size, "jacrev"))
def reverse_jacobian(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    jnp, jacrev = space.jnp, space.px.jacrev
    return lambda: jacrev(lambda x: jnp.tanh(x @ w))(x)


@transformed("jacfwd", FORWARD, torch=lambda space, size: torch_jacobian(space, size, "jacfwd"))
def forward_jacobian(space: Any, size: int) -> Callable[[], Any]:
    x, w = inputs(space, size)
    jnp, jacfwd = space.jnp, space.px.jacfwd
    return lambda: jacfwd(lambda x: jnp.tanh(x @ w))(x)


def torch_jacobian(space: Any, size: int, transform: str) -> Callable[[], Any]:
    x, w = inputs(space, size)
    torch = space.torch
    return lambda: getattr(torch.func, transform)(lambda x: torch.tanh(x @ w))(x)


# A multilayer perceptron of 16-32-32-10 on 8 examples.


def mlp_inputs(space: Any) -> tuple[Any, ...]:
    return tuple(
        space.arrays([mlp_parameters((16, 32, 32, 10)), normal(8, 16, seed=5), integers(10, 8, seed=6)])
    )


def mlp_gradient_torch(space: Any, size: int) -> Callable[[], Any]:
    arguments, loss = mlp_inputs(space), mlp_loss_torch(space)
    return lambda: space.torch.func.grad(loss)(*arguments)


def mlp_gradient_tape(space: Any, size: int) -> Callable[[], Any]:
    layers, x, labels = mlp_inputs(space)
    layers = map_leaves(lambda leaf: leaf.requires_grad_(), layers)
    parameters, loss, grad = leaves(layers), mlp_loss_torch(space), space.torch.autograd.grad
    return lambda: grad(loss(layers, x, labels), parameters)


def mlp_gradient_autograd(space: Any, size: int) -> Callable[[], Any]:
    import autograd

    arguments, loss = mlp_inputs(space), mlp_loss_autograd(space)
    return lambda: autograd.grad(loss)(*arguments)


@transformed(
    "grad of an MLP loss",
    GRADIENT,
    torch=mlp_gradient_torch,
    torch_autograd=mlp_gradient_tape,
    autograd=mlp_gradient_autograd,
)
def mlp_gradient(space: Any, size: int) -> Callable[[], Any]:
    arguments, loss, grad = mlp_inputs(space), mlp_loss(space), space.px.grad
    return lambda: grad(loss)(*arguments)


# Control flow with fresh lambdas.


@transformed("cond with fresh lambdas", CONTROL)
def conditional(space: Any, size: int) -> Callable[[], Any]:
    x, cond = space.array(normal(size)), space.lax.cond
    return lambda: cond(True, lambda x: x + 1.0, lambda x: x - 1.0, x)


@transformed("scan with a fresh lambda", CONTROL)
def scanned(space: Any, size: int) -> Callable[[], Any]:
    xs, scan = space.jnp.ones(10), space.lax.scan
    return lambda: scan(lambda carry, x: (carry + x, carry * x), 0.0, xs)


@transformed("while_loop with fresh lambdas", CONTROL)
def looped(space: Any, size: int) -> Callable[[], Any]:
    while_loop = space.lax.while_loop
    return lambda: while_loop(lambda x: x < 100.0, lambda x: x * 2.0, 1.0)


@transformed("fori_loop with a fresh lambda", CONTROL)
def counted(space: Any, size: int) -> Callable[[], Any]:
    x, fori_loop = space.array(normal(size)), space.lax.fori_loop
    return lambda: fori_loop(0, 10, lambda step, x: x * 0.5 + step, x)


@transformed("switch with fresh lambdas", CONTROL)
def switched(space: Any, size: int) -> Callable[[], Any]:
    x, switch = space.array(normal(size)), space.lax.switch
    return lambda: switch(1, [lambda x: x + 1.0, lambda x: x * 2.0, lambda x: x - 1.0], x)


@transformed("grad of scan with a fresh lambda", CONTROL)
def scanned_gradient(space: Any, size: int) -> Callable[[], Any]:
    xs, scan, grad = space.jnp.ones(10), space.lax.scan, space.px.grad
    return lambda: grad(lambda start: scan(lambda carry, x: (carry * x * 0.9, None), start, xs)[0])(2.0)
