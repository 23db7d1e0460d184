"""Differentiation for users: `grad` and related functions, on functions of pytrees.

Reverse mode is `linearize` followed by `transpose`; forward mode is `jvp`. Python control flow on concrete values
works under both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from purax.api.jit import jit
from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of, tangent_aval
from purax.core.primitive import LinearOperand
from purax.core.rewriting_hook import call_or_rewrite
from purax.core.source import located
from purax.core.trace import Tracer, current, using
from purax.errors import ShapeError, shown
from purax.interpreters import plain_numbers
from purax.interpreters.arguments import (
    as_positions,
    aval_of_argument,
    exact_array,
    name_of,
    require_function,
    wraps,
)
from purax.interpreters.jvp import jvp_flat
from purax.interpreters.linearize import Tape, linearize_flat
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import checked_results, stage
from purax.interpreters.transpose import transpose_flat, transpose_tape
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import number_like
from purax.primitives.shape.broadcasting import materialize
from purax.references import cells
from purax.tree.nodes import register_pytree_node_class
from purax.tree.registry import keystr, leaf_treedef, tree_flatten, tree_flatten_with_path, tree_unflatten
from purax.xla.array import DeviceArray

P = ParamSpec("P")
R = TypeVar("R")


def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]:
    """The gradient of a function that returns a scalar.

    Args:
        fun: the function; its differentiated arguments are arrays, numbers or trees of them.
        argnums: the position, or positions, of the arguments to differentiate with respect to.
        has_aux: whether `fun` returns a pair (value, something else), of which only the first is differentiated.
        holomorphic: whether `fun` is a holomorphic function of complex numbers.
        allow_int: whether integer arguments are allowed; their gradients are of dtype float0.
        reduce_axes: must be empty: gradients are summed over named axes by `purax.lax.psum`.

    Returns:
        A function with the arguments of `fun` that returns the gradient, shaped like the argument (a tuple of
        gradients for several `argnums`); with `has_aux`, a pair (gradient, something else).

    >>> import purax as px
    >>> px.grad(lambda x: x**3)(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    _refuse_reduce_axes("grad", reduce_axes)
    value_and_gradient = _value_and_gradient(fun, argnums, has_aux, holomorphic, allow_int, "grad")

    @wraps(fun)
    def gradient(*args, **kwargs):
        value, result = value_and_gradient(args, kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


def value_and_grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, Any]]:
    """The value and the gradient of a function that returns a scalar; arguments as those of `grad`.

    Returns:
        A function that returns (value, gradient); with `has_aux`, ((value, something else), gradient).

    >>> import purax as px
    >>> value, gradient = px.value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    _refuse_reduce_axes("value_and_grad", reduce_axes)
    value_and_gradient = _value_and_gradient(fun, argnums, has_aux, holomorphic, allow_int, "value_and_grad")
    return wraps(fun)(lambda *args, **kwargs: value_and_gradient(args, kwargs))


def _value_and_gradient(
    fun: Callable, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool, caller: str
) -> Callable[[tuple, dict[str, Any]], tuple[Any, Any]]:
    """`value_and_grad` on (args, kwargs), for `caller`."""
    require_function(fun, caller)
    if argnums is None:
        raise located(TypeError, f"{caller}: argnums must be an integer or integers, got None")
    positions = as_positions(argnums, "argnums")
    single = type(argnums) is int or not isinstance(argnums, Sequence)

    def value_and_gradient(args, kwargs):
        chosen = _choose(fun, caller, positions, args)
        leaves, tree = tree_flatten(tuple(args[i] for i in chosen))
        opened = None
        if cells.has_cells(leaves) and any(
            kind.is_differentiated for x in leaves if (kind := cells.kind_of(x)) is not None
        ):
            opened = cells.Opened(leaves, name_of(fun))
            leaves = opened.arrays
        primals = [
            _differentiable_leaf(x, i, tree, fun, caller, holomorphic, allow_int)
            for i, x in enumerate(leaves)
        ]
        flat = FlatFunction(fun, args, kwargs, chosen, tree, has_aux, opened)
        moving = [dtypes.is_inexact(x.aval.dtype) for x in primals]
        out, tape = linearize_flat(flat, primals, moving)
        value = _scalar_result(out, flat, fun, caller, holomorphic)
        cotangents = transpose_tape(tape, [number_like(1, value)])
        gradients = [_gradient(c, x.aval) for c, x in zip(cotangents, primals, strict=True)]
        result = tree_unflatten(
            tree, gradients if opened is None else cells.close(opened.layout, gradients)[0]
        )
        value = tree_unflatten(flat.out_tree, [plain_numbers.plain(value)])
        return (value, flat.aux) if has_aux else value, result[0] if single else result

    return value_and_gradient


def jvp(
    fun: Callable, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of a function and its derivative along a direction: f(x), f'(x) dx.

    Args:
        fun: the function.
        primals: its arguments, a tuple or list.
        tangents: the direction, of the same structure and types as `primals`.
        has_aux: whether `fun` returns a pair (value, something else), of which only the first is differentiated.

    Returns:
        (value, tangent), or (value, tangent, something else) with `has_aux`.

    >>> import purax as px
    >>> value, tangent = px.jvp(lambda x: x**2, (3.0,), (1.0,))
    >>> float(value), float(tangent)
    (9.0, 6.0)
    """
    require_function(fun, "jvp")
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)):
            raise located(
                TypeError,
                f"primal and tangent arguments to jvp must be tuples or lists, but {name} is {type(value).__name__}",
            )
    primals, tangents = tuple(primals), tuple(tangents)
    leaves, tree = tree_flatten(primals)
    tangent_leaves, tangent_tree = tree_flatten(tangents)
    if tree != tangent_tree:
        raise located(
            TypeError,
            "primal and tangent arguments to jvp must have the same tree structure; primals have tree structure "
            f"{tree} whereas tangents have tree structure {tangent_tree}.",
        )
    values = plain_numbers.primals_of(fun, leaves, (primals, {}))
    directions = [
        _tangent_for(t, x.aval, tree, i) for i, (t, x) in enumerate(zip(tangent_leaves, values, strict=True))
    ]
    flat = FlatFunction(fun, primals, {}, range(len(primals)), tree, has_aux)
    out, out_tangents = jvp_flat(flat, values, directions)
    results = [_result(y) for y in out]
    result = tree_unflatten(flat.out_tree, results)
    moved = [_user_tangent(t, aval_of(y)) for t, y in zip(out_tangents, out, strict=True)]
    tangent = tree_unflatten(flat.out_tree, [plain_numbers.plain(t) for t in moved])
    return (result, tangent, flat.aux) if has_aux else (result, tangent)


def vjp(fun: Callable, *primals: Any, has_aux: bool = False, reduce_axes: Sequence = ()) -> tuple[Any, ...]:
    """The value of a function and the function that pulls cotangents back: f(x), ȳ ↦ f'(x)ᵀ ȳ.

    Args:
        fun: the function.
        *primals: its arguments.
        has_aux: whether `fun` returns a pair (value, something else), of which only the first is differentiated.
        reduce_axes: must be empty, as in jax; sum over a named axis with `purax.lax.psum`.

    Returns:
        (value, pullback), or (value, pullback, something else); `pullback` takes a cotangent shaped like the value and
        returns a tuple of cotangents shaped like the arguments.

    >>> import purax as px
    >>> value, pullback = px.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> [float(g) for g in pullback(1.0)]
    [4.0, 3.0]
    """
    require_function(fun, "vjp")
    _refuse_reduce_axes("vjp", reduce_axes)
    leaves, tree = tree_flatten(primals)
    values = plain_numbers.primals_of(fun, leaves, (primals, {}))
    flat = FlatFunction(fun, primals, {}, range(len(primals)), tree, has_aux)
    out, tape = linearize_flat(flat, values, [dtypes.is_inexact(x.aval.dtype) for x in values])
    out = [plain_numbers.array_from(y) for y in out]
    in_avals, out_avals = tuple(x.aval for x in values), tuple(y.aval for y in out)
    values = plain_numbers.all_plain(out)
    hands_on = any(value is not y for value, y in zip(values, out, strict=True))
    pullback = Pullback(tape, in_avals, out_avals, tree, flat.out_tree, name_of(fun), hands_on)
    result = tree_unflatten(flat.out_tree, values)
    return (result, pullback, flat.aux) if has_aux else (result, pullback)


def _refuse_reduce_axes(name: str, reduce_axes: Sequence) -> None:
    if reduce_axes:
        raise located(
            NotImplementedError,
            f"{name}: reduce_axes={shown(reduce_axes)} is no longer supported; sum the cotangents over the named "
            "axis yourself: `purax.lax.psum(cotangent, axis_name)`",
        )


class LinearMap:
    """A derivative at a point, or its transpose, as a function; it can be called often.

    It is a pytree, whose leaves are the values kept for its linear part, so a jitted function can return it. If the
    function handed numbers on (`plain_numbers`), so does this one.
    """

    def __init__(self, tape: Tape, in_avals, out_avals, in_tree, out_tree, name: str, hands_on: bool = False):
        self._tape = tape
        self._in_avals = in_avals
        self._out_avals = out_avals
        self._in_tree = in_tree
        self._out_tree = out_tree
        self._name = name
        self._hands_on = hands_on

    def tree_flatten(self):
        template, residuals = self._tape.to_jaxpr(self._name)
        # Linear programs made from one template are one structure, so that a backward pass is traced once.
        rest = (template, tuple(self._tape.invars), tuple(self._tape.outvars))
        types = (self._in_avals, self._out_avals, self._in_tree, self._out_tree)
        return residuals, (rest, *types, self._name, self._hands_on)

    @classmethod
    def tree_unflatten(cls, aux, residuals):
        (template, invars, outvars), *fields = aux
        return cls(Tape.with_residuals(template, list(residuals), invars, outvars), *fields)

    def _results(self, tree: Any, results: list[Any]) -> Any:
        return tree_unflatten(tree, plain_numbers.all_plain(results) if self._hands_on else results)


@register_pytree_node_class
class Pullback(LinearMap):
    """What `vjp` returns: maps a cotangent of the result to cotangents of the arguments."""

    in_tree = property(lambda self: self._in_tree)
    out_tree = property(lambda self: self._out_tree)

    @property
    def args_res(self) -> Any:
        """What the linear program reads besides the tangents: the values kept for it."""
        return self._tape.to_jaxpr(self._name)[1]

    @property
    def jaxpr(self) -> Any:
        """The linear program, from the values kept and the tangents of the arguments to the tangents of the result."""
        return self._tape.to_jaxpr(self._name)[0].jaxpr

    def __call__(self, cotangent: Any) -> tuple:
        leaves, tree = tree_flatten(cotangent)
        if tree != self._out_tree:
            raise located(
                ShapeError,
                f"the cotangent for `{self._name}` must have the structure of its result, {self._out_tree}, "
                f"got {tree}",
            )
        cotangents = [
            _cotangent_for(c, aval, self._name) for c, aval in zip(leaves, self._out_avals, strict=True)
        ]
        results = transpose_tape(self._tape, cotangents)
        gradients = [_gradient(c, a) for c, a in zip(results, self._in_avals, strict=True)]
        return self._results(self._in_tree, gradients)


@register_pytree_node_class
class Pushforward(LinearMap):
    """What `linearize` returns: maps tangents of the arguments to the tangent of the result."""

    def __call__(self, *tangents: Any) -> Any:
        leaves, tree = tree_flatten(tangents)
        if tree != self._in_tree:
            raise located(
                TypeError,
                f"the tangents for `{self._name}` must have the structure of its arguments, {self._in_tree}, got "
                f"{tree}",
            )
        directions = [
            _tangent_for(t, aval, tree, i)
            for i, (t, aval) in enumerate(zip(leaves, self._in_avals, strict=True))
        ]
        moving = [v is not None for v in self._tape.invars]
        results = self._tape([materialize(d) if m else d for d, m in zip(directions, moving, strict=True)])
        return self._results(self._out_tree, list(map(_user_tangent, results, self._out_avals)))


def fwd_and_bwd(
    fun: Callable, argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable, Callable]:
    """The forward and the backward pass of a function, each compiled once.

    Args:
        fun: the function.
        argnums: the position, or positions, of the arguments to differentiate with respect to.
        has_aux: whether `fun` returns a pair (value, something else), of which only the first is differentiated.
        jitted: whether to compile both.

    Returns:
        (fwd, bwd): `fwd(*args)` returns (value, residuals), or (value, residuals, something else);
        `bwd(residuals, cotangent)` returns the cotangents of the chosen arguments.

    >>> import purax as px
    >>> fwd, bwd = px.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> value, residuals = fwd(3.0, 4.0)
    >>> [float(g) for g in bwd(residuals, 1.0)]
    [4.0, 3.0]
    """
    require_function(fun, "fwd_and_bwd")
    positions = as_positions(argnums, "argnums")
    single = not isinstance(argnums, Sequence)

    def fwd(*args):
        chosen = _choose(fun, "fwd_and_bwd", positions, args)

        def partial(*values):
            given = list(args)
            for i, value in zip(chosen, values, strict=True):
                given[i] = value
            return fun(*given)

        return vjp(partial, *(args[i] for i in chosen), has_aux=has_aux)

    def bwd(residuals, cotangent):
        results = residuals(cotangent)
        return results[0] if single else results

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


def linearize(fun: Callable, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and its derivative there as a function of the direction: f(x), dx ↦ f'(x) dx.

    Args:
        fun: the function.
        *primals: its arguments.
        has_aux: whether `fun` returns a pair (value, something else), of which only the first is differentiated.

    Returns:
        (value, pushforward), or (value, pushforward, something else); the derivative is computed once, and each call
        of `pushforward` costs only its linear part.

    >>> import purax as px
    >>> value, pushforward = px.linearize(lambda x: x**2, 3.0)
    >>> float(value), float(pushforward(1.0))
    (9.0, 6.0)
    """
    require_function(fun, "linearize")
    leaves, tree = tree_flatten(primals)
    values = plain_numbers.primals_of(fun, leaves, (primals, {}))
    flat = FlatFunction(fun, primals, {}, range(len(primals)), tree, has_aux)
    out, tape = linearize_flat(flat, values, [dtypes.is_inexact(x.aval.dtype) for x in values])
    out = [plain_numbers.array_from(y) for y in out]

    in_avals, out_avals = tuple(x.aval for x in values), tuple(y.aval for y in out)
    values = plain_numbers.all_plain(out)
    hands_on = any(value is not y for value, y in zip(values, out, strict=True))
    pushforward = Pushforward(tape, in_avals, out_avals, tree, flat.out_tree, name_of(fun), hands_on)
    result = tree_unflatten(flat.out_tree, values)
    return (result, pushforward, flat.aux) if has_aux else (result, pushforward)


def linear_transpose(fun: Callable, *primals: Any, reduce_axes: Sequence = ()) -> Callable:
    """The transpose of a function that is linear in its arguments.

    Args:
        fun: a linear function.
        *primals: arguments, or `ShapeDtypeStruct`s that stand for them; only their types are used.
        reduce_axes: must be empty, as in jax.

    Returns:
        A function from a cotangent of the result to a tuple of cotangents of the arguments.

    >>> import purax as px
    >>> transpose = px.linear_transpose(lambda x: 3 * x, 1.0)
    >>> [float(g) for g in transpose(2.0)]
    [6.0]
    """
    require_function(fun, "linear_transpose")
    _refuse_reduce_axes("linear_transpose", reduce_axes)
    leaves, tree = tree_flatten(primals)
    avals = [aval_of_argument(x) for x in leaves]
    flat = FlatFunction(fun, primals, {}, range(len(primals)), tree, False)
    closed = stage(flat, avals, name_of(fun))

    def transposed(cotangent):
        cotangent_leaves, cotangent_tree = tree_flatten(cotangent)
        if cotangent_tree != flat.out_tree:
            raise located(
                TypeError,
                f"the cotangent for `{name_of(fun)}` must have the structure of its result, {flat.out_tree}, got "
                f"{cotangent_tree}",
            )
        given = [
            _cotangent_for(c, a, name_of(fun))
            for c, a in zip(cotangent_leaves, closed.out_avals, strict=True)
        ]
        hoisted = hoist_constants(closed)
        operands = [*closed.consts, *(LinearOperand(aval) for aval in avals)]
        results = transpose_flat(hoisted, operands, given)[len(closed.consts) :]
        return tree_unflatten(
            tree, [_as_weak_as(materialize(c), aval) for c, aval in zip(results, avals, strict=True)]
        )

    return transposed


class FlatFunction:
    """A user's function on pytrees as a function on flat lists, for the differentiated arguments.

    After a call, `out_tree` and `aux` hold the structure of the result and the auxiliary value.
    """

    def __init__(self, fun, args, kwargs, positions, tree, has_aux, opened=None):
        self.fun, self.args, self.kwargs = fun, args, kwargs
        self.positions, self.tree, self.has_aux = positions, tree, has_aux
        self.out_tree = self.aux = None
        self.layout = None if opened is None else opened.layout

    def __call__(self, *leaves):
        if self.layout is not None:
            leaves, _ = cells.close(self.layout, leaves)
        chosen = tree_unflatten(self.tree, plain_numbers.all_plain(leaves))
        args = list(self.args)
        for position, value in zip(self.positions, chosen, strict=True):
            args[position] = value
        result = call_or_rewrite(self.fun, *args, **self.kwargs)
        if self.has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise located(
                    TypeError,
                    f"with has_aux=True, `{name_of(self.fun)}` must return a pair (value, auxiliary), got "
                    f"{shown(result)}",
                )
            result, self.aux = result
            self.aux = _untraced(self.aux)
        out, self.out_tree = tree_flatten(result)
        return checked_results(out, result, name_of(self.fun))


def _untraced(aux: Any) -> Any:
    """Auxiliary values without the tracers of the differentiation that is about to end; those of others stay."""
    ending: Any = current.trace
    leaves, tree = tree_flatten(aux)
    untraced = [
        plain_numbers.plain(x.primal)  # type: ignore[attr-defined]
        if isinstance(x, Tracer) and x.owner is ending
        else x
        for x in leaves
    ]
    with using(ending.parent):  # some libraries' nodes remember where they were made
        return tree_unflatten(tree, untraced)


def _choose(fun, caller: str, positions: Sequence[int], args: tuple) -> list[int]:
    """Positions of differentiated arguments, checked against the call."""
    chosen = []
    for i in positions:
        if not -len(args) <= i < len(args):
            raise located(
                ValueError,
                f"differentiating with respect to argnums={i} requires at least {i + 1 if i >= 0 else -i} positional "
                f"arguments to be passed by the caller, but got only {len(args)} in the {caller} of "
                f"`{name_of(fun)}`; pass the differentiated arguments by position",
            )
        chosen.append(i % len(args))
    return chosen


def _differentiable_leaf(x, index, tree, fun, caller, holomorphic, allow_int):
    """A leaf of a differentiated argument as an array; raises if its dtype cannot be differentiated."""
    try:
        x = plain_numbers.array_from(x)
    except TypeError as error:
        raise located(
            TypeError,
            f"{caller} of `{name_of(fun)}`: {_leaf_name(tree, index)} is not an array or number: {error}",
        ) from None
    dtype = x.aval.dtype
    if holomorphic and not dtypes.is_complex(dtype):
        problem = (
            f"with holomorphic=True arguments must be complex, but {_leaf_name(tree, index)} is {dtype.name}"
        )
        raise located(TypeError, f"{caller} of `{name_of(fun)}`: {problem}")
    if not dtypes.is_inexact(dtype) and not allow_int:
        raise located(
            TypeError,
            f"{caller} of `{name_of(fun)}` requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), that is, it needs floating point arguments, but {_leaf_name(tree, index)} is "
            f"{x.aval.str_short()} (dtype {dtype.name}). Pass a float (`2.0` for `2`, `x.astype(float)`), "
            "choose other argnums, or use allow_int=True for a float0 gradient.",
        )
    return x


def _leaf_name(tree, index: int) -> str:
    paths = tree_flatten_with_path(tree_unflatten(tree, range(tree.num_leaves)))[0]
    first, *rest = paths[index][0]
    return f"differentiated argument {first.idx}{keystr(tuple(rest))}"


def _scalar_result(out: list, flat: FlatFunction, fun, caller: str, holomorphic: bool):
    """The one result of a function that is differentiated in reverse; raises unless it is a real scalar."""
    name = name_of(fun)
    if flat.out_tree != leaf_treedef:
        raise located(
            TypeError,
            "Gradient only defined for scalar-output functions. "
            f"{caller} needs a function that returns a scalar, but `{name}` returned a structure {flat.out_tree}. "
            "Return one number, use has_aux=True for (value, auxiliary), or `jacrev` for several results.",
        )
    value = plain_numbers.array_from(out[0])
    aval = value.aval
    if aval.shape != ():
        raise located(
            TypeError,
            f"Gradient only defined for scalar-output functions. Output had shape: {aval.shape}. {caller} needs a "
            f"function that returns a scalar, but `{name}` returned an array of shape {aval.shape}. Reduce it "
            "(`.sum()`, `.mean()`), or use `jacrev`/`jacfwd` for derivatives of arrays.",
        )
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise located(
            TypeError,
            f"{caller} with holomorphic=True needs a complex result, but `{name}` returned {aval.str_short()}",
        )
    if not holomorphic and not dtypes.is_floating(aval.dtype):
        hint = (
            "Use holomorphic=True for a holomorphic function, or return its real part."
            if dtypes.is_complex(aval.dtype)
            else "Convert it to a float."
        )
        raise located(
            TypeError,
            f"{caller} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but `{name}` "
            f"returned {aval.str_short()}. {hint}",
        )
    return value


def _gradient(cotangent, aval: ShapedArray):
    """A cotangent as the user gets it: an array of the type of the argument, float0 zeros for integers."""
    if type(cotangent) is DeviceArray and cotangent.aval is aval:
        return cotangent
    if cotangent is None:
        return np.zeros(aval.shape, dtypes.float0)
    return _as_weak_as(exact_array(materialize(cotangent), aval), aval)


def _result(value: Any) -> Any:
    """A value of a differentiated function as the user gets it."""
    return plain_numbers.plain(plain_numbers.array_from(value))


def _user_tangent(tangent, primal: ShapedArray):
    """A tangent as the user gets it, of the weak type of the value that it belongs to, or the number it stands for."""
    if type(tangent) is not Zero:
        return tangent if plain_numbers.plain(tangent) is not tangent else _as_weak_as(tangent, primal)
    if tangent.aval.dtype == dtypes.float0:
        return np.zeros(tangent.aval.shape, dtypes.float0)
    return _as_weak_as(materialize(tangent), primal)


def _as_weak_as(x, aval: ShapedArray):
    """`x` with the weak type of `aval`."""
    return x if x.aval.weak_type == aval.weak_type else convert_element_type(x, x.aval.dtype, aval.weak_type)


def _tangent_for(tangent, primal: ShapedArray, tree, index: int):
    """A direction given by the user, checked against the argument it belongs to."""
    wanted = tangent_aval(primal)
    where = _leaf_name(tree, index).replace("differentiated argument", "argument")
    if wanted.dtype == dtypes.float0:
        if getattr(tangent, "dtype", None) == dtypes.float0:
            return Zero(wanted)
        raise located(
            TypeError,
            f"the tangent of {where}, an array of dtype {dtypes.dtype_name(primal.dtype)}, must have "
            f"dtype float0: numpy.zeros({primal.shape}, purax.dtypes.float0)",
        )
    value = plain_numbers.array_from(tangent)
    if value.aval.shape != wanted.shape:
        raise located(
            ValueError,
            f"the tangent of {where} has shape {value.aval.shape}, but the argument has shape {wanted.shape}",
        )
    return _with_dtype(value, tangent, wanted, f"the tangent of {where}")


def _cotangent_for(cotangent, aval: ShapedArray, name: str):
    wanted = tangent_aval(aval)
    if wanted.dtype == dtypes.float0:
        return Zero(wanted)
    if type(cotangent) is Zero:
        return cotangent
    value = plain_numbers.array_from(cotangent)
    if value.aval.shape != wanted.shape:
        raise located(
            ValueError,
            f"the cotangent for `{name}` has shape {value.aval.shape}, but the result has shape {wanted.shape}",
        )
    return _with_dtype(value, cotangent, wanted, f"the cotangent for `{name}`")


def _with_dtype(value, given: Any, wanted: ShapedArray, what: str):
    """`value`, made of what was `given`, if its dtype is right; Python numbers are converted, other dtypes refused."""
    if value.aval.dtype == wanted.dtype:
        return value
    is_number = given is not value or dtypes.kind(value.aval.dtype) == dtypes.kind(wanted.dtype)
    if value.aval.weak_type and type(value) is DeviceArray and is_number:
        return DeviceArray(ShapedArray(wanted.shape, wanted.dtype), value.host_value().astype(wanted.dtype))
    raise located(
        TypeError,
        f"{what} has dtype {dtypes.dtype_name(value.aval.dtype)}, but dtype {dtypes.dtype_name(wanted.dtype)} is "
        "needed; convert it with `.astype`",
    )


__all__ = ["fwd_and_bwd", "grad", "jvp", "linear_transpose", "linearize", "value_and_grad", "vjp"]
