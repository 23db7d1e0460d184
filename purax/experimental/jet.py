"""Taylor mode: the derivatives of a function along a curve, all orders up to one at once, as `jax.experimental.jet`.

A value is a truncated power series x(t) = x₀ + x₁t + … + x_K t^K. Linear operations act on each term, products are
convolutions, and everything else follows from the `jvp` rule: y = f(x) has y'(t) = f'(x(t)) x'(t), whose series is
found by the rule itself, applied to series of one order less. What a rule computes again is remembered, so that the
work grows like a power of the order, not exponentially as with `jvp` of `jvp`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import Zero, aval_of
from purax.core.exact import exact_items
from purax.core.jaxpr import eval_jaxpr
from purax.core.limits import finite
from purax.core.source import located
from purax.core.trace import Trace, Tracer, current
from purax.errors import shown
from purax.interpreters.arguments import require_function, to_array
from purax.primitives.elementwise.arithmetic import div
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.shape.broadcasting import zeros
from purax.tree.registry import tree_flatten, tree_unflatten


class SeriesTracer(Tracer):
    """A value as a power series.

    Attributes:
        terms: its coefficients, the value first; at least two.
    """

    __slots__ = ("_derivative", "_shorter", "terms")

    def __init__(self, trace: JetTrace, terms: Sequence[Any]):
        if not isinstance(trace, Trace):
            raise TypeError(f"a power series belongs to a trace, got {shown(trace)}")
        self.owner = trace
        self.terms = list(finite(terms))
        self.aval = aval_of(self.terms[0])
        self._shorter: Any = None
        self._derivative: Any = None

    @property
    def order(self) -> int:
        return len(self.terms) - 1

    def shorter(self) -> Any:
        """The series without its last term; always the same object."""
        if self._shorter is None:
            self._shorter = self.owner.series(self.terms[:-1])  # type: ignore[attr-defined]
        return self._shorter

    def derivative(self) -> Any:
        """The series of the derivative by t, of one order less."""
        if self._derivative is None:
            scaled = [scale(x, k) for k, x in enumerate(self.terms)][1:]
            self._derivative = self.owner.series(scaled)  # type: ignore[attr-defined]
        return self._derivative

    def concrete_or_none(self):
        value = self.terms[0]
        return value.concrete_or_none() if isinstance(value, Tracer) else value


class JetTrace(Trace):
    """Applies operations to power series."""

    __slots__ = ("_known",)
    name = "jet"

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self._known: dict[Any, Any] = {}

    def series(self, terms: Sequence[Any]) -> Any:
        return SeriesTracer(self, terms) if len(terms) > 1 else terms[0]

    def is_own(self, x: Any) -> bool:
        return type(x) is SeriesTracer and x.owner is self

    def process(self, primitive, operands, params):
        orders = [x.order for x in operands if self.is_own(x)]
        if not orders:
            return self._in_parent(lambda: self.parent.process(primitive, operands, params))
        if primitive.is_call:
            closed = params["jaxpr"]
            return eval_jaxpr(closed.jaxpr, closed.consts, *operands)
        order = min(orders)
        operands = [self._cut(x, order) for x in operands]
        if (rule := jet_rules.get(primitive)) is not None:
            return self._by_own_rule(primitive, rule, operands, params, order)
        if primitive.is_linear:
            return self._in_parent(lambda: self._linear(primitive, operands, params, order))
        if primitive.is_bilinear:
            return self._in_parent(lambda: self._bilinear(primitive, operands, params, order))
        return self._by_rule(primitive, operands, params, order)

    def _in_parent(self, function: Callable[[], Any]) -> Any:
        assert self.parent is not None
        current.trace = self.parent
        try:
            return function()
        finally:
            current.trace = self

    def _cut(self, x: Any, order: int) -> Any:
        while self.is_own(x) and x.order > order:
            x = x.shorter()
        return x

    def _by_own_rule(self, primitive, rule, operands, params, order):
        """A rule of `jet_rules`: from values and series to those of the results."""
        values = [x.terms[0] if self.is_own(x) else x for x in operands]
        series = [x.terms[1:] if self.is_own(x) else [zeros(aval_of(to_array(x)))] * order for x in operands]
        out, terms = self._in_parent(lambda: rule(values, series, **params))
        if primitive.multiple_results:
            return [self.series([y, *ts]) for y, ts in zip(out, terms, strict=True)]
        return self.series([out, *terms])

    def _linear(self, primitive, operands, params, order):
        """(L x)_k = L x_k."""
        fixed = [None if self.is_own(x) else zeros(aval_of(x)) for x in operands]
        found = []
        for k in range(order + 1):
            values = [
                (x if k == 0 else zero) if zero is not None else x.terms[k]
                for x, zero in zip(operands, fixed, strict=True)
            ]
            found.append(primitive.bind(*values, **params))
        if primitive.multiple_results:
            return [self.series(terms) for terms in zip(*found, strict=True)]
        return self.series(found)

    def _bilinear(self, primitive, operands, params, order):
        """(x y)_k = Σ_{i+j=k} x_i y_j."""
        x, y = operands
        if not self.is_own(x):
            return self.series([primitive.bind(x, y_k, **params) for y_k in y.terms])
        if not self.is_own(y):
            return self.series([primitive.bind(x_k, y, **params) for x_k in x.terms])
        terms = []
        for k in range(order + 1):
            parts = [primitive.bind(x.terms[i], y.terms[k - i], **params) for i in range(k + 1)]
            total = parts[0]
            for part in parts[1:]:
                total = add(total, part)
            terms.append(total)
        return self.series(terms)

    def _by_rule(self, primitive, operands, params, order):
        """From y' = f'(x) x': y_k = (y')_{k-1} / k."""
        key = (primitive, *(id(x) for x in operands), *exact_items(params))
        try:
            known = self._known.get(key)
        except TypeError:  # a parameter that cannot be hashed
            known = key = None
        if known is not None:
            return known[0]
        primals = [x.shorter() if self.is_own(x) else x for x in operands]
        tangents = [x.derivative() if self.is_own(x) else Zero.like(x) for x in operands]
        out, tangent = primitive.jvp(primals, tangents, **params)
        several = primitive.multiple_results
        results = [
            self._in_parent(lambda y=y, dy=dy: self._integrated(y, dy, order))
            for y, dy in (zip(out, tangent, strict=True) if several else [(out, tangent)])
        ]
        result = results if several else results[0]
        if key is not None:
            self._known[key] = result, operands  # which must stay alive, since they are known by their ids
        return result

    def _integrated(self, y: Any, derivative: Any, order: int) -> Any:
        start = y.terms[0] if self.is_own(y) else y
        if type(derivative) is Zero:
            return start
        terms = derivative.terms if self.is_own(derivative) else [derivative]
        terms = [*terms, *(zeros(aval_of(terms[0])) for _ in range(order - len(terms)))]
        return self.series([start, *(x if k == 1 else unscale(x, k) for k, x in enumerate(terms, 1))])


def scale(x: Any, number: float) -> Any:
    """`number` times an array, in its dtype."""
    return x if number == 1 else mul(x, _like(number, x))


def unscale(x: Any, number: float) -> Any:
    """An array divided by `number`, in its dtype."""
    return x if number == 1 else div(x, _like(number, x))


def _like(number: float, x: Any) -> Any:
    aval = aval_of(x)
    value = aval.dtype.type(number)
    return convert_element_type(to_array(value), aval.dtype, weak_type=True) if aval.weak_type else value


def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """The value and the higher derivatives of a function along a curve, by Taylor mode.

    Args:
        fun: a function of arrays, or of trees of them.
        primals: its arguments: where the curve is at t = 0.
        series: for each argument the derivatives of the curve, the first, the second, …, as many for each argument.
        factorial_scaled: whether `series` and the result are derivatives; if not, they are coefficients of power
            series, the k-th derivative divided by k!.

    Returns:
        The result of `fun`, and the same tree with a list of derivatives, as many as were given, for each array.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.jet import jet
    >>> value, derivatives = jet(lambda x: x**3, (2.0,), ((1.0, 0.0, 0.0),))
    >>> float(value), [float(d) for d in derivatives]
    (8.0, [12.0, 12.0, 6.0])
    """
    require_function(fun, "jet")
    if not isinstance(primals, (tuple, list)) or not isinstance(series, (tuple, list)):
        raise located(
            TypeError,
            f"jet: primals and series must be tuples or lists, got {shown(primals)} and {shown(series)}",
        )
    series = _filled(primals, series)
    lengths = [len(terms) if isinstance(terms, (tuple, list)) else None for terms in series]
    if len(series) != len(primals) or len(set(lengths)) > 1 or None in lengths:
        raise located(
            ValueError,
            f"jet: series must have a list of terms, all of one length, for each of the {len(primals)} arguments; "
            f"jet terms have inconsistent lengths: {lengths}",
        )
    order = (lengths[0] if lengths else None) or 0
    leaves, tree = tree_flatten(tuple(finite(primals)))
    columns = [_terms(leaf, i) for i, leaf in enumerate(leaves)]
    for k in range(order):
        terms, own_tree = tree_flatten(tuple(one[k] for one in series))
        if own_tree != tree:
            raise located(
                ValueError, f"jet: term {k} of series has the structure {own_tree}, the arguments have {tree}"
            )
        for column, term in zip(columns, terms, strict=True):
            x, given = column[0], to_array(term)
            if given.shape != x.shape:
                raise located(
                    ValueError, f"jet: a term of shape {given.shape} for an argument of shape {x.shape}"
                )
            value = convert_element_type(given, x.dtype, weak_type=x.aval.weak_type)
            column.append(unscale(value, math.factorial(k + 1)) if factorial_scaled else value)

    outer = current.trace
    trace = JetTrace(outer)
    current.trace = trace
    try:
        results = fun(*tree_unflatten(tree, [trace.series(column) for column in columns]))
    finally:
        current.trace = outer
        trace.alive = False
        trace._known.clear()
    out_leaves, out_tree = tree_flatten(results)
    values, derivatives = [], []
    for y in out_leaves:
        own = trace.is_own(y)
        terms = y.terms if own else [y, *[zeros(aval_of(to_array(y)))] * order]
        values.append(terms[0])
        factors = [math.factorial(k) if factorial_scaled else 1 for k in range(1, order + 1)]
        derivatives.append(
            [scale(x, c) for x, c in zip(terms[1:], factors, strict=True)] if own else terms[1:]
        )
    return tree_unflatten(out_tree, values), tree_unflatten(out_tree, derivatives)


def jet2(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    *,
    factorial_scaled: bool = False,
    **_: Any,
) -> tuple[Any, Any]:
    """`jet` of power series: `series` and the result are coefficients, unless `factorial_scaled`.

    Args:
        fun: a function of arrays, or of trees of them.
        primals: its arguments: where the curve is at t = 0.
        series: for each argument the coefficients of t, t², …
        factorial_scaled: whether they are derivatives instead, k! times as much.

    >>> from purax.experimental.jet import jet2
    >>> value, terms = jet2(lambda x: x * x, (2.0,), ((1.0, 0.0),))
    >>> float(value), [float(x) for x in terms]
    (4.0, [4.0, 1.0])
    """
    return jet(fun, primals, series, factorial_scaled)


def _filled(primals: Sequence[Any], series: Sequence[Any]) -> list[Any]:
    """The series of all arguments, with zeros for those that are `zero_series` and for terms that are `zero_term`."""
    order = max([len(terms) for terms in series if isinstance(terms, (tuple, list))], default=0)
    found: list[Any] = []
    for x, terms in zip(primals, series, strict=False):
        if isinstance(terms, ZeroSeries):
            terms = [zero_term] * order
        if isinstance(terms, (tuple, list)) and any(isinstance(t, ZeroTerm) for t in terms):
            leaves, tree = tree_flatten(x)
            nothing = tree_unflatten(tree, [zeros(aval_of(to_array(leaf))) for leaf in leaves])
            terms = [nothing if isinstance(t, ZeroTerm) else t for t in terms]
        found.append(terms)
    return [*found, *series[len(found) :]]


class ZeroTerm:
    """A term that is zero."""


class ZeroSeries:
    """A series of which all terms are zero: that of an argument that does not move."""


zero_term, zero_series = ZeroTerm(), ZeroSeries()
JetTracer = SeriesTracer

# Rules of single primitives that are asked before all others, by the primitive:
# (values, series of coefficients, **params) -> (results, their series).
jet_rules: dict[Any, Callable[..., tuple[Any, Any]]] = {}


def fact(n: Any) -> Any:
    """The factorial, elementwise.

    >>> from purax.experimental.jet import fact
    >>> float(fact(4))
    24.0
    """
    x = to_array(n)
    table = [math.factorial(k) for k in range(35)]  # which is what float32 holds
    if isinstance(n, int):
        return to_array(float(math.factorial(n)))
    return to_array(np.array(table, np.float32))[x]


def _checked(prim: Any) -> Any:
    if not hasattr(prim, "bind"):
        raise located(TypeError, f"jet: prim must be a primitive, got {shown(prim)}")
    return prim


def deflinear(prim: Any) -> None:
    """Declares a primitive linear: it maps each term by itself.

    Args:
        prim: the primitive.
    """
    jet_rules[_checked(prim)] = functools.partial(linear_prop, prim)


def linear_prop(prim: Any, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any) -> Any:
    """The rule of a linear primitive: (L x)_k = L x_k."""
    out = _checked(prim).bind(*primals_in, **params)
    terms = [prim.bind(*column, **params) for column in zip(*series_in, strict=True)]
    if prim.multiple_results:
        return out, [list(ts) for ts in zip(*terms, strict=True)]
    return out, terms


def defzero(prim: Any) -> None:
    """Declares that the results of a primitive do not move: it is constant in pieces.

    Args:
        prim: the primitive.
    """
    jet_rules[_checked(prim)] = functools.partial(zero_prop, prim)


def zero_prop(prim: Any, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any) -> Any:
    """The rule of a primitive that is constant in pieces."""
    out = _checked(prim).bind(*primals_in, **params)
    order = len(series_in[0])
    if prim.multiple_results:
        return out, [[zeros(aval_of(y))] * order for y in out]
    return out, [zeros(aval_of(out))] * order


def def_deriv(prim: Any, deriv: Callable) -> None:
    """The rule of a primitive of one operand, from its derivative.

    Args:
        prim: the primitive.
        deriv: the derivative as a function, of the operand and the parameters.
    """
    jet_rules[_checked(prim)] = functools.partial(deriv_prop, prim, deriv)


def deriv_prop(
    prim: Any, deriv: Callable, primals_in: Sequence[Any], series_in: Sequence[Any], **params: Any
) -> Any:
    """From y' = f'(x) x': y_k = Σ_j j x_j (f'(x))_{k-j} / k."""
    (x,), (terms,) = primals_in, series_in
    out = _checked(prim).bind(x, **params)
    first, rest = (
        jet2(lambda x: deriv(x, **params), (x,), (list(terms[:-1]),))
        if len(terms) > 1
        else (
            deriv(x, **params),
            [],
        )
    )
    slopes, found = [first, *rest], []
    for k in range(1, len(terms) + 1):
        total: Any = None
        for j in range(1, k + 1):
            part = mul(scale(terms[j - 1], j), slopes[k - j])
            total = part if total is None else add(total, part)
        found.append(unscale(total, k))
    return out, found


def def_comp(prim: Any, comp: Callable, **kwargs: Any) -> None:
    """The rule of a primitive that is a composition of others.

    Args:
        prim: the primitive.
        comp: a function of the operands that computes the same.
        kwargs: keyword arguments for it.
    """

    def rule(values: Sequence[Any], series: Sequence[Any], **params: Any) -> Any:
        return jet2(functools.partial(comp, **kwargs, **params), values, series)

    jet_rules[_checked(prim)] = rule


def _terms(leaf: Any, position: int) -> list[Any]:
    x = to_array(leaf)
    if not dtypes.is_inexact(x.dtype):
        raise located(
            TypeError,
            f"jet: argument {position} is {x.aval.str_short()}; only arrays of floating-point or complex numbers "
            "lie on curves. Convert it, or leave it out of the arguments: jet(lambda x: f(x, n), …).",
        )
    return [x]


__all__ = [
    "JetTrace",
    "JetTracer",
    "ZeroSeries",
    "ZeroTerm",
    "def_comp",
    "def_deriv",
    "deflinear",
    "defzero",
    "deriv_prop",
    "fact",
    "jet",
    "jet2",
    "jet_rules",
    "linear_prop",
    "zero_prop",
    "zero_series",
    "zero_term",
]
