"""`SpecialFunction`, the family of functions that are one formula in programs and SciPy's on the host.

A formula (see `purax.primitives.elementwise.formula`) is written for the inside of the domain and computed in
float64 or complex128, whatever the dtype of the operands (with fewer digits for narrower ones, see
`purax.primitives.elementwise.short_formulas`); so is SciPy's
function. The edges of the domain are the same for both. Derivatives are those of the formula: the parameter `orders`
says how often it is differentiated with respect to each operand.
"""

from __future__ import annotations

import importlib
import math

import numpy as np

from purax.core import dtypes
from purax.primitives.elementwise.elementwise import Elementwise, common_shape, mul
from purax.primitives.elementwise.formula import HostFormula, raised, where
from purax.primitives.elementwise.short_formulas import widened
from purax.primitives.special.formulas import derivative, moved

FLOAT64 = np.dtype(np.float64)
COMPLEX128 = np.dtype(np.complex128)


def scipy_function(name: str):
    """A function of `scipy.special`, which is imported when it is first needed."""
    return getattr(importlib.import_module("scipy.special"), name)


def wide_dtype(dtype) -> np.dtype:
    """The dtype that functions of operands of `dtype` are computed in."""
    return COMPLEX128 if dtypes.is_complex(dtype) else FLOAT64


def precision_for(dtype) -> float:
    """The relative accuracy to which series are summed for results of `dtype`."""
    return 2.3e-16 if dtype in (FLOAT64, COMPLEX128) else 1e-9


class SpecialFunction(Elementwise):
    """A function of numbers given by a formula and by SciPy.

    Attributes:
        scipy_name: of the function in `scipy.special`.
        harmless: for each operand a number inside the domain, which stands for operands outside.
    """

    accepts = ("float",)
    cost = 30
    scipy_name = ""
    harmless: tuple[float, ...] = (1.0,)

    def inside(self, *operands):
        """Where the formula holds."""
        raise NotImplementedError

    def formula(self, precision: float, *operands):
        """The function inside of its domain, on formulas or duals."""
        raise NotImplementedError

    def edge(self, *operands):
        """The function elsewhere."""
        return operands[0].number(math.nan)

    def edge_derivative(self, *operands):
        """Derivatives elsewhere."""
        return operands[0].number(math.nan)

    def infer(self, *avals, orders=()):
        if orders and (len(orders) != len(avals) or min(orders) < 0):
            raise ValueError(f"{self.name}: orders must be {len(avals)} integers ≥ 0, got {orders}")
        return super().infer(*avals)

    def host(self, *operands, orders=()):
        dtype = operands[0].dtype
        shape = common_shape([x.shape for x in operands])  # of any number of axes, where NumPy knows up to 64
        equal = [x if x.shape == shape else np.broadcast_to(x, shape) for x in operands]
        wide = [x.astype(wide_dtype(dtype)) for x in equal]
        formulas = [HostFormula(None, x) for x in wide]
        if any(orders):
            return self.differentiated(precision_for(dtype), orders, *formulas).value.astype(dtype)
        if len(wide) == 1:  # what SciPy finds to be finite is no edge
            value = np.asarray(self.on_host(*wide))
            if np.isfinite(value).all():
                return value.astype(dtype)
        is_inside = self.inside(*formulas).value
        if is_inside.all():
            return np.asarray(self.on_host(*wide)).astype(dtype)
        safe = [np.where(is_inside, x, n) for x, n in zip(wide, self.harmless, strict=True)]
        return np.where(is_inside, self.on_host(*safe), self.edge(*formulas).value).astype(dtype)

    def on_host(self, *operands):
        """The function inside of its domain, of NumPy arrays of float64 or complex128."""
        return scipy_function(self.scipy_name)(*operands)

    def emit(self, builder, *operands, orders=()):
        dtype = operands[0].dtype
        formulas = [widened(builder, x, wide_dtype(dtype)) for x in operands]
        return self.differentiated(precision_for(dtype), orders, *formulas).convert(dtype).value

    def differentiated(self, precision: float, orders, *operands):
        """The derivative of the given orders, the function itself if there are none."""
        is_inside = self.inside(*operands)
        variables = [where(is_inside, x, n) for x, n in zip(operands, self.harmless, strict=True)]
        level = 0
        for position, order in enumerate(orders):  # each direction is a level of duals of its own
            for _ in range(order):
                variables[position] = moved(raised(variables[position], level), 1)
                level += 1
        result = derivative(raised(self.formula(precision, *variables), level), level)
        return where(is_inside, result, self.edge_derivative(*operands) if level else self.edge(*operands))

    def tangent(self, position, dx, out, *operands, orders=()):
        return mul(dx, self.derivative_by_formula(position, *operands, orders=orders))

    def derivative_by_formula(self, position: int, *operands, orders=()):
        """The derivative with respect to one operand, by differentiating the formula."""
        before = orders or (0,) * len(operands)
        return self.bind(*operands, orders=tuple(n + (i == position) for i, n in enumerate(before)))
