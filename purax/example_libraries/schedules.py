"""Step sizes as functions of the number of the step, for `purax.example_libraries.optimizers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax import numpy as jnp

Schedule = Callable[[Any], Any]


def constant(step_size: Any) -> Schedule:
    """Always the same step size.

    >>> from purax.example_libraries.optimizers import constant
    >>> constant(0.1)(7)
    0.1
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """A step size that is multiplied by `decay_rate` every `decay_steps` steps, smoothly.

    >>> from purax.example_libraries.optimizers import exponential_decay
    >>> exponential_decay(1.0, 2, 0.5)(4)
    0.25
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """A step size that falls with the inverse of the time.

    Args:
        step_size: that of step 0.
        decay_steps: the unit of time.
        decay_rate: the step size is divided by 1 + decay_rate · i / decay_steps.
        staircase: whether only whole units of time count.

    >>> from purax.example_libraries.optimizers import inverse_time_decay
    >>> float(inverse_time_decay(1.0, 2, 0.5, staircase=True)(5))
    0.5
    """
    time = (lambda i: jnp.floor(i / decay_steps)) if staircase else (lambda i: i / decay_steps)
    return lambda i: step_size / (1 + decay_rate * time(i))


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """A step size that reaches `final_step_size` after `decay_steps` steps, along a power of the time left.

    >>> from purax.example_libraries.optimizers import polynomial_decay
    >>> float(polynomial_decay(1.0, 10, 0.0)(5))
    0.5
    """

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return final_step_size + (step_size - final_step_size) * left**power

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The first value up to and with the first boundary, and so on.

    Args:
        boundaries: numbers of steps, ascending.
        values: one more than there are boundaries.

    >>> from purax.example_libraries.optimizers import piecewise_constant
    >>> [float(piecewise_constant([3], [1.0, 0.5])(i)) for i in (3, 4)]
    [1.0, 0.5]
    """
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError(
            f"piecewise_constant: boundaries and values are sequences, got shapes {boundaries.shape} and {values.shape}"
        )
    if len(boundaries) + 1 != len(values):
        raise ValueError(
            f"piecewise_constant: {len(boundaries)} boundaries need {len(boundaries) + 1} values, got {len(values)}"
        )
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """A schedule as it is, or a number as a constant one.

    >>> from purax.example_libraries.optimizers import make_schedule
    >>> make_schedule(0.1)(3)
    0.1
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"a step size is a number or a function of the step, got {type(scalar_or_schedule).__name__}"
    )
