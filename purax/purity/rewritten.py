"""The names that rewritten functions use: this module is the variable `_purax` in them."""

from purax.purity.control_flow import (
    State,
    all_of,
    any_of,
    branch,
    check,
    choose,
    compare,
    is_sequence_of,
    load,
    negate,
    none_of,
    one_of,
    plain,
    read,
    repeat_for,
    repeat_while,
    value_of_and,
    value_of_or,
)
from purax.purity.control_flow_calls import call
from purax.purity.control_flow_comprehensions import chosen, consume, may_hold

__all__ = [
    "State",
    "all_of",
    "any_of",
    "branch",
    "call",
    "check",
    "choose",
    "chosen",
    "compare",
    "consume",
    "is_sequence_of",
    "load",
    "may_hold",
    "negate",
    "none_of",
    "one_of",
    "plain",
    "read",
    "repeat_for",
    "repeat_while",
    "value_of_and",
    "value_of_or",
]
