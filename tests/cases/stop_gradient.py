"""Cases for `purax.primitives.stop_gradient`."""

from purax.primitives.stop_gradient import stop_gradient_p
from purax.testing.case import case, numbers

# Its derivative is zero by definition and not that of its values, so the law of finite differences does not apply.
CASES = [
    case(stop_gradient_p, numbers((3,)), differentiable=False),
    case(stop_gradient_p, numbers((2, 3), "int32"), differentiable=False),
    case(stop_gradient_p, numbers((), "complex64"), differentiable=False),
]
