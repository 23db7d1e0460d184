"""Wrong arguments of all kinds: each function refuses them with an error that names it, or what is wrong.

A sample of everything: strings, None, objects for arrays; axes, dtypes, sizes and modes that there are not.
"""

from __future__ import annotations

import inspect
import operator
import warnings

import numpy as np
import pytest

import purax.numpy as jnp
from tests.numpy.test_docs import FUNCTIONS, NUMPYS_OWN

SQUARE = np.ones((3, 3), np.float32)
NOT_ARRAYS = {"a string": "abc", "None": None, "an object": object(), "a dict": {}}
WRONG = {
    "axis": [7, "x", 1.5], "axes": [9], "dtype": ["nope"], "n": [-1], "k": ["a"], "size": [-3], "mode": ["nope"],
    "method": ["nope"], "order": ["Z"], "norm": ["nope"], "ord": ["nope"], "indexing": ["zz"], "side": ["zz"],
    "shape": [-2], "shift": ["a"], "decimals": ["a"], "offset": ["a"], "out": [1], "num": [-1], "UPLO": ["Z"],
    "deg": [-1], "bins": ["foo"], "casting": ["zz"],
}  # fmt: skip
GOOD = {
    "axis": 0, "shape": (9,), "q": 0.5, "repeats": 2, "indices": np.array([0]), "kth": 1, "decimals": 0, "n": 3,
    "axis1": 0, "axis2": 1, "source": 0, "destination": 1, "pad_width": 1, "fill_value": 1, "bins": 3, "dtype": "int8",
    "indices_or_sections": 3, "deg": 1, "condition": SQUARE > 0, "axes": (1, 0), "reps": 2, "k": 0, "M": 4,
    "start": 0, "stop": 1, "num": 3, "N": 3, "shift": 1, "choices": [SQUARE], "obj": 0, "ind": 0, "dims": (3, 3),
    "new_shape": (3, 3), "condlist": [SQUARE > 0], "choicelist": [SQUARE], "multi_index": (0, 0), "ndim": 2,
}  # fmt: skip
# Functions of anything at all, and such as take lists or names where others take arrays.
OF_ANYTHING = {
    "array", "asarray", "array_repr", "block", "broadcast_shapes", "can_cast", "copy", "empty", "frombuffer",
    "fromfile", "fromfunction", "fromiter", "frompyfunc", "fromstring", "from_dlpack", "full", "isdtype", "isscalar",
    "iscomplexobj", "isrealobj", "issubdtype", "load", "ones", "promote_types", "result_type", "vectorize", "zeros",
    "shape", "ndim", "size", "einsum_path", "apply_along_axis", "apply_over_axes", "piecewise", "mask_indices",
}  # fmt: skip


def calls(name: str):
    """Wrong calls of a function, each with what is wrong about it."""
    function = operator.attrgetter(name)(jnp)
    parameters = list(inspect.signature(function).parameters.values())
    required = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    plain = [GOOD.get(p, SQUARE) for p in required]
    if required and required[0] not in GOOD:
        for what, value in NOT_ARRAYS.items():
            yield f"{required[0]} is {what}", function, [value, *plain[1:]], {}
    for p in parameters:
        for value in WRONG.get(p.name, []):
            if p.name in required:
                place = required.index(p.name)
                yield f"{p.name}={value!r}", function, [*plain[:place], value, *plain[place + 1 :]], {}
            else:
                yield f"{p.name}={value!r}", function, plain, {p.name: value}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in OF_ANYTHING | NUMPYS_OWN])
def test_wrong_arguments_are_refused_with_a_reason(name):
    short = name.split(".")[-1]
    for what, function, arguments, keywords in calls(name):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                function(*arguments, **keywords)
            except (TypeError, ValueError, IndexError, NotImplementedError, OverflowError) as error:
                message = str(error)
            else:
                assert not what.startswith(
                    (*("axis='x'", "dtype=", "mode=", "ord=", "side=", "out="), "x is a str")
                )
                continue
        assert len(message) > 15, (what, message)
        is_located = "\n  at " in message  # the user's line, which names the function, too
        assert is_located or short in message or what.partition("=")[0] in message, f"{what}: {message}"
        assert "XLA" not in message and "stablehlo" not in message.lower(), message
