"""Attention as an operation, with derivatives that keep no logits: it is lowered to tiles, or to a kernel of cuDNN.

`attention` gives o, m and l (see `attention_form`), `attention_tangent` is its derivative, linear in tangents, and
`attention_cotangent` the transpose of that. Derivatives of the last two, which are second derivatives of an attention,
are those of the formulas with all logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax import numpy as jnp
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr
from purax.core.memo import Memo
from purax.core.primitive import LinearOperand, Primitive
from purax.execution import compiled_program
from purax.interpreters.extended_dtypes import with_literals
from purax.interpreters.jvp import jvp_flat
from purax.interpreters.staging import stage
from purax.lowering import jaxpr_to_stablehlo
from purax.nn import attention_form, attention_tiles, cudnn_attention
from purax.nn.attention_form import Form
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, materialize

_programs: Memo = Memo()
_OF_NVIDIA = ("gpu", "cuda")


def _staged(
    kind: tuple, function: Callable, avals: Sequence[ShapedArray], params: dict[str, Any]
) -> ClosedJaxpr:
    """The program of a function, recorded once for operands of certain types."""
    key = (*kind, tuple(avals), *sorted(params.items()))
    if key not in _programs:
        _programs[key] = ClosedJaxpr(with_literals(stage(function, avals, kind[0])))
    return _programs[key]


def _module_for(builder: Any, form: Form) -> Any:
    """Whose functions say what the operations of a program are: those for tiles, for cuDNN, or with all logits."""
    if (
        form.kernel is not None
        and builder.platform in _OF_NVIDIA
        and (builder.manual or builder.module.mesh is None)
    ):
        return cudnn_attention
    if form.kernel == "cudnn":
        where = "several devices" if builder.platform in _OF_NVIDIA else f"the platform {builder.platform!r}"
        raise NotImplementedError(
            f"dot_product_attention: implementation='cudnn' is not there for {where}; leave `implementation` out"
            + (", or call it inside of `shard_map`" if builder.platform in _OF_NVIDIA else "")
        )
    return attention_tiles if builder.platform == "cpu" else attention_form


class AttentionPrimitive(Primitive):
    """What the three operations share: `formula` of `attention_form` or of `attention_tiles` says what they compute."""

    multiple_results = True
    runs_itself = True

    def formula(self, module: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
        """The results, by the functions of a module."""
        raise NotImplementedError

    def run(self, *operands, **params):
        closed = _staged(
            (self.name, None), lambda *xs: self.bind(*xs, **params), [aval_of(x) for x in operands], params
        )
        return compiled_program.run(closed, operands)

    def lower(self, builder, *operands, **params):
        module = _module_for(builder, params["form"])
        avals = [ShapedArray(x.aval.shape, x.aval.dtype) for x in operands]
        name = module.__name__.rpartition(".")[2]
        closed = _staged((self.name, name), lambda *xs: self.formula(module, xs, **params), avals, params)
        return jaxpr_to_stablehlo.lower_body(builder, closed.jaxpr, operands)

    def jvp(self, primals, tangents, **params):
        return jvp_flat(lambda *xs: self.formula(attention_form, xs, **params), primals, tangents)


class Attention(AttentionPrimitive):
    """o, or o, m and l, of an attention.

    Params:
        form: the options.
        with_sums: whether m and l are results, too.
    """

    name = "attention"

    def infer(self, *avals, form, with_sums):
        return attention_form.result_avals(form, form.named(avals), with_sums)

    def formula(self, module, operands, *, form, with_sums):
        return module.attention(form, form.named(operands), with_sums)

    def jvp(self, primals, tangents, *, form, with_sums):
        results = self.bind(*primals, form=form, with_sums=True)
        moving = _moving(form, [type(t) is not Zero for t in tangents])
        given = [t for t in tangents[: len(moving)] if type(t) is not Zero]
        if not given:
            return results[: 3 if with_sums else 1], [Zero.like(y) for y in results[: 3 if with_sums else 1]]
        by_out, by_l = attention_tangent_p.bind(*primals, *results, *given, form=form, moving=moving)
        if not with_sums:
            return results[:1], [by_out]
        return results, [by_out, Zero.like(results[1]), by_l]

    def batch(self, operands, batch_axes, *, form, with_sums):
        folded = _Folded(operands, batch_axes, form)
        results = self.bind(*folded.operands, form=form, with_sums=with_sums)
        return [folded.unfold(y) for y in results], [0] * len(results)


class LinearPart(AttentionPrimitive):
    """Of the operands, o, m and l, and operands in which it is linear.

    Params:
        form: the options.
        moving: which of query, key, value and bias have a tangent or a cotangent here; there is none for the others.
    """

    def transposed(self) -> LinearPart:
        raise NotImplementedError

    def jvp(self, primals, tangents, *, form, moving):
        count = form.count + 3
        out = self.bind(*primals, form=form, moving=moving)
        linear, rest = tangents[count:], tangents[:count]
        total = [Zero.like(y) for y in out]
        if any(type(t) is not Zero for t in linear):
            total = self.bind(*primals[:count], *map(materialize, linear), form=form, moving=moving)
        if any(type(t) is not Zero for t in rest):
            still = [*rest, *(Zero.like(x) for x in primals[count:])]
            _, more = super().jvp(primals, still, form=form, moving=moving)
            total = [_sum(x, y) for x, y in zip(total, more, strict=True)]
        return out, total

    def transpose(self, cotangents, *operands, form, moving):
        fixed = operands[: form.count + 3]
        given = [materialize(c) for c in cotangents]
        results = self.transposed().bind(*fixed, *given, form=form, moving=moving)
        return [None] * len(fixed) + [
            y if type(x) is LinearOperand else None
            for x, y in zip(operands[len(fixed) :], results, strict=True)
        ]


class AttentionTangent(LinearPart):
    """The tangents of o and l: linear in those of query, key, value and bias."""

    name = "attention_tangent"

    def transposed(self):
        return attention_cotangent_p

    def infer(self, *avals, form, moving):
        return [avals[form.count], avals[form.count + 2]]

    def _given(self, operands: Sequence[Any], form: Form, moving: Sequence[bool]) -> list[Any]:
        given = iter(operands[form.count + 3 :])
        return [next(given) if flag else None for flag in (*moving, *[False] * (4 - len(moving)))]

    def formula(self, module, operands, *, form, moving):
        named, results = form.named(operands), operands[form.count : form.count + 3]
        return module.tangent(form, named, results, self._given(operands, form, moving))

    def batch(self, operands, batch_axes, *, form, moving):
        folded = _Folded(operands, batch_axes, form, moving)
        results = self.bind(*folded.operands, form=form, moving=moving)
        return [folded.unfold(y) for y in results], [0] * len(results)


class AttentionCotangent(LinearPart):
    """The cotangents of query, key, value and bias: linear in those of o and l."""

    name = "attention_cotangent"

    def transposed(self):
        return attention_tangent_p

    def infer(self, *avals, form, moving):
        return [avals[i] for i, flag in enumerate(moving) if flag]

    def formula(self, module, operands, *, form, moving):
        named, results = form.named(operands), operands[form.count : form.count + 3]
        return module.cotangent(form, named, results, operands[form.count + 3 :], moving)

    def batch(self, operands, batch_axes, *, form, moving):
        folded = _Folded(operands, batch_axes, form, moving)
        results = [folded.unfold(y) for y in self.bind(*folded.operands, form=form, moving=moving)]
        if len(moving) > 3 and moving[3] and folded.bias_is_repeated:
            results[-1] = jnp.sum(results[-1], axis=1, keepdims=True)
        return results, [0] * len(results)


def _sum(x: Any, y: Any) -> Any:
    return x if type(y) is Zero else y if type(x) is Zero else x + y


def _moving(form: Form, flags: Sequence[bool]) -> tuple[bool, ...]:
    """Which of query, key, value and, if there is one, bias have a tangent."""
    return tuple(flags[: 4 if form.has_bias else 3])


class _Folded:
    """The operands over a batch of attentions as those of one, whose batch is as many times as large.

    A bias and a mask that all elements share stay one, unless the bias has a tangent: then each has its own.
    """

    def __init__(
        self, operands: Sequence[Any], batch_axes: Sequence[int | None], form: Form, moving: Any = ()
    ):
        self.size = batch_size(operands, batch_axes)
        query = operands[0]
        shape = [n for axis, n in enumerate(query.shape) if axis != batch_axes[0]]
        self.batch = shape[0]
        self.bias_is_repeated = False
        bias_moves = len(moving) > 3 and moving[3]
        shared = [3] * (form.has_bias and not bias_moves) + [3 + form.has_bias] * form.has_mask
        alike = ([3, *([len(operands) - 1] if len(operands) > form.count + 3 else [])]) if bias_moves else []
        self.operands = [
            self._fold(x, axis, i in shared, i in alike)
            for i, (x, axis) in enumerate(zip(operands, batch_axes, strict=True))
        ]

    def _fold(self, x: Any, axis: int | None, may_be_shared: bool, may_be_bias: bool) -> Any:
        if axis is None and may_be_shared and x.shape[0] == 1:
            return x
        x = batch_to_front(x, axis, self.size)
        if x.shape[1] != self.batch:  # a bias or a mask for all
            self.bias_is_repeated = self.bias_is_repeated or may_be_bias
            x = jnp.broadcast_to(x, (self.size, self.batch, *x.shape[2:]))
        return x.reshape(self.size * self.batch, *x.shape[2:])

    def unfold(self, x: Any) -> Any:
        return x.reshape(self.size, self.batch, *x.shape[1:])


attention_p = Attention()
attention_tangent_p = AttentionTangent()
attention_cotangent_p = AttentionCotangent()
