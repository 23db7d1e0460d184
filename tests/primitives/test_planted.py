"""The laws catch wrong rules: mistakes of the kinds people make are planted, and each must be named by its law."""

from __future__ import annotations

import numpy as np
import pytest

from purax.core.avals import Zero, aval_of
from purax.core.primitive import is_linear
from purax.primitives.elementwise.arithmetic import div
from purax.primitives.elementwise.conversion import conj
from purax.primitives.elementwise.elementwise import Add, Mul, add, mul
from purax.primitives.products.contraction import DotGeneral, dot_general_p
from purax.primitives.reductions.reduction import Argmax, ReduceMax, ReduceProd
from purax.primitives.shape.broadcasting import ReduceSum, broadcast_in_dim, materialize, reduce_sum
from purax.testing import laws
from purax.testing.case import case, numbers

x, y = numbers([2, 3]), numbers([2, 3], seed=1)


class WrongShape(ReduceSum):
    def infer(self, x, *, axes):
        return x


class WrongDtype(Argmax):
    def host(self, x, *, axes, index_dtype):
        return np.asarray(x.argmax(axes[0]))


class WeakResult(Add):
    def infer(self, *avals):
        return super().infer(*avals).update(weak_type=True)


class IgnoresLayout(Add):
    def host(self, x, y):
        return np.frombuffer(x.tobytes("A"), x.dtype).reshape(x.shape) + y


class ChangesItsOperand(Add):
    def host(self, x, y):
        x += y
        return x


class WrongOpcode(Add):
    opcode = "subtract"


class WrongInitialValue(ReduceMax):
    def lower(self, builder, x, *, axes):
        return builder.reduce(x, 0, "maximum", axes)


class NotLowerable(Add):
    def lower(self, builder, x, y):
        return builder.op("no_such_operation", (x, y), x.aval)


class WrongTangent(Mul):
    def tangent(self, position, dx, out, x, y):
        return mul(dx, y) if position == 0 else mul(y, dx)


class ForgetsAnOperand(Mul):
    def jvp(self, primals, tangents):
        (x, y), (dx, _) = primals, tangents
        return self.bind(x, y), mul(materialize(dx), y)


class WrongPrimal(Mul):
    def jvp(self, primals, tangents):
        out, tangent = super().jvp(primals, tangents)
        return add(out, 1e-3), tangent


class ZeroTangent(Mul):
    def jvp(self, primals, tangents):
        out = self.bind(*primals)
        return out, Zero.like(out)


class WideTangent(Mul):
    def jvp(self, primals, tangents):
        out, tangent = super().jvp(primals, tangents)
        return out, np.asarray(tangent.host_value(), np.float64)


class DividesByElements(ReduceProd):
    """Right but where an element is zero."""

    def tangent(self, x, dx, out, axes):
        spread = broadcast_in_dim(out, aval_of(x).shape, (0,))
        return reduce_sum(mul(dx, div(spread, x)), axes)


class ConstantAtSecondOrder(Mul):
    """The first derivative is right; its own derivative is lost, since the primal is taken out of the trace."""

    def tangent(self, position, dx, out, x, y):
        other = y if position == 0 else x
        while hasattr(other, "primal"):
            other = other.primal
        return mul(dx, other)


class NotLinearInTangent(Mul):
    def tangent(self, position, dx, out, x, y):
        return add(mul(dx, y if position == 0 else x), mul(mul(dx, dx), 0.0))


class ForgottenSum(Mul):
    def transpose(self, cotangent, x, y):
        return tuple(mul(cotangent, y if is_linear(x) else x) if is_linear(v) else None for v in (x, y))


class ConjugatedTranspose(DotGeneral):
    def transpose(self, cotangent, lhs, rhs, **params):
        return super().transpose(cotangent, lhs, conj(rhs), **params)


class UnorderedTranspose(DotGeneral):
    """Forgets that the axes of the product are not in the order of the operand."""

    def transpose(self, cotangent, lhs, rhs, *, dimension_numbers, **params):
        (left, right), batch = dimension_numbers
        return super().transpose(
            cotangent, lhs, rhs, dimension_numbers=((left[::-1], right), batch), **params
        )


class TooFewCotangents(Add):
    def transpose(self, cotangent, x, y):
        return super().transpose(cotangent, x, y)[:1]


class WrongBatchAxis(ReduceSum):
    def batch(self, operands, batch_axes, *, axes):
        out, _ = super().batch(operands, batch_axes, axes=axes)
        return out, 0


class UnmovedAxes(ReduceSum):
    def batch(self, operands, batch_axes, *, axes):
        return self.bind(operands[0], axes=axes), batch_axes[0]


class BatchOfOneKind(DotGeneral):
    """Right when both operands are batched along their first axes."""

    def batch(self, operands, batch_axes, **params):
        return super().batch(operands, [0, 0], **params)


class RepeatsTheFirst(Add):
    def batch(self, operands, batch_axes):
        first = [
            np.take(v, [0], axis) if axis is not None else v
            for v, axis in zip(operands, batch_axes, strict=True)
        ]
        out, axis = super().batch(first, batch_axes)
        shape = tuple(laws.BATCH if i == axis else n for i, n in enumerate(aval_of(out).shape))
        return broadcast_in_dim(out, shape, range(len(shape))), axis


class NoBatch(Add):
    def batch(self, operands, batch_axes):
        self.is_missing("batch", "vectorizes")


matrix = {"dimension_numbers": (((0, 1), (0, 1)), ((), ()))}
PLANTED = {
    "infer": [
        case(WrongShape(), x, axes=(1,)),
        case(WrongDtype(), x, axes=(1,), index_dtype=np.dtype(np.int32)),
        case(WeakResult(), x, y),
        case(IgnoresLayout(), x, y),
        case(ChangesItsOperand(), x, y),
    ],
    "lower": [
        case(WrongOpcode(), x, y),
        case(WrongInitialValue(), -np.abs(x), axes=(0,)),
        case(NotLowerable(), x, y),
    ],
    "jvp": [
        case(WrongTangent(), x, y),
        case(ForgetsAnOperand(), x, y),
        case(WrongPrimal(), x, y),
        case(ZeroTangent(), x, y),
        case(WideTangent(), x, y),
        case(DividesByElements(), np.array([[0, 1, 2]], np.float32), axes=(1,)),
        case(ConstantAtSecondOrder(), x, y),
    ],
    "reverse": [case(NotLinearInTangent(), x, y)],
    "transpose": [
        case(ForgottenSum(), numbers([]), y, linear=(0,)),
        case(ConjugatedTranspose(), x.astype(np.complex64) * (1 + 1j), y + 1j * x, linear=(0,), **matrix),
        case(
            UnorderedTranspose(),
            numbers([3, 3]),
            numbers([3, 3], seed=1),
            linear=(0,),
            dimension_numbers=(((0, 1), (1, 0)), ((), ())),
        ),
        case(TooFewCotangents(), x, y, linear=(0, 1)),
    ],
    "batch": [
        case(WrongBatchAxis(), numbers([3, 2, 3]), axes=(1,)),
        case(UnmovedAxes(), x, axes=(1,)),
        case(BatchOfOneKind(), numbers([3, 3]), numbers([3, 3], seed=1), **matrix),
        case(RepeatsTheFirst(), x, y),
        case(NoBatch(), x, y),
    ],
}


@pytest.mark.parametrize(
    "law, planted",
    [
        pytest.param(law, each, id=type(each.primitive).__name__)
        for law, rows in PLANTED.items()
        for each in rows
    ],
)
def test_a_planted_mistake_is_caught_by_its_law(law, planted):
    assert laws.applies(law, planted)
    with pytest.raises(AssertionError) as caught:
        laws.LAWS[law](planted)
    message = str(caught.value)
    assert message.startswith(f"{planted.primitive.name}: `")
    assert str(planted) in message


@pytest.mark.parametrize("law", list(laws.LAWS))
def test_every_law_has_a_planted_mistake(law):
    assert PLANTED[law]


@pytest.mark.parametrize("law", list(laws.LAWS))
def test_the_true_rules_pass(law):
    true = case(dot_general_p, numbers([3, 3]), numbers([3, 3], seed=1), linear=(1,), **matrix)
    laws.LAWS[law](true)


def test_one_bad_case_does_not_hide_the_others_of_its_program():
    good, bad = case(Add(), x, y), case(NotLowerable(), x, y)
    results = laws.lowered_results([good, bad, good])
    assert isinstance(results[1], Exception)
    laws.compare_lowered(good, results[0])
    laws.compare_lowered(good, results[2])
