"""Floats of less than 32 bits: functions of several operations compute them in float32 and round once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.numpy._promotion import FLOAT32, convert, dtype_of


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of operations that computes narrower floats in float32, and rounds once."""

    @functools.wraps(function)
    def wide(*operands):
        dtype = dtype_of(operands[0])
        if np.dtype(dtype).itemsize >= 4:
            return function(*operands)
        return convert(function(*[convert(x, FLOAT32) for x in operands]), dtype)

    return wide
