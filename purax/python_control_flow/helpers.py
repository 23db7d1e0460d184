"""The names that rewritten functions use: this module is the variable `_purax` in them."""

import operator

from purax.python_control_flow.branches import State, branch, check, choose, divisor, plain
from purax.python_control_flow.buffers import iterated
from purax.python_control_flow.calls import call
from purax.python_control_flow.comprehensions import chosen, consume, may_hold
from purax.python_control_flow.logic import (
    all_of,
    any_of,
    compare,
    is_sequence_of,
    none_of,
    one_of,
    value_of_and,
    value_of_or,
)
from purax.python_control_flow.loops import repeat_for, repeat_while
from purax.python_control_flow.subscripts import augment, augment_item, item, store
from purax.python_control_flow.truth import attribute, attributes_of, load, negate

slice = slice  # rewritten subscripts use it, whatever the user calls so

__all__ = [
    "State",
    "all_of",
    "any_of",
    "attribute",
    "attributes_of",
    "augment",
    "augment_item",
    "branch",
    "call",
    "check",
    "choose",
    "chosen",
    "compare",
    "consume",
    "divisor",
    "is_sequence_of",
    "item",
    "iterated",
    "load",
    "may_hold",
    "negate",
    "none_of",
    "one_of",
    "operator",
    "plain",
    "repeat_for",
    "repeat_while",
    "slice",
    "store",
    "value_of_and",
    "value_of_or",
]
