"""What the versions in C and in Python are both asked: programs that follow from a seed, and what came of each.

Run as a program, this prints the outcomes as lines of JSON; `--python` leaves the versions in C out. The two runs must
not differ (`test_twins.py`). An outcome is a value, with its types and bits, or the type of an error.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import operator
import random
import re
import sys
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np


class Whole(int):
    """An integer of another class."""


class Real(float):
    """A number of another class."""


class Row(list):
    """A list of another class."""


class Pair(NamedTuple):
    """A tuple of another class."""

    a: Any
    b: Any = 1


class Own(np.ndarray):
    """A NumPy array of another class."""


class Takes:
    """What other operands leave the work to."""

    def __add__(self, other):
        return "add"

    def __radd__(self, other):
        return "radd"

    def __rmul__(self, other):
        return "rmul"

    def __eq__(self, other):
        return "equal"

    __hash__ = None


class AsArray:
    """What NumPy makes an array of."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0, dtype=np.float32)


class AsIndex:
    """What counts as an integer."""

    def __index__(self):
        return 1


Case = tuple[str, Any]  # how it reads, and the function that does it


def described(x: Any) -> Any:
    """Everything about a result that could differ."""
    from purax.core.array import Array

    if isinstance(x, Array):
        host = np.asarray(x)
        return ["Array", type(x).__name__, str(x.dtype), x.weak_type, list(x.shape), host.tobytes().hex()]
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(described, x)]
    if isinstance(x, dict):
        return ["dict", *[[repr(k), described(v)] for k, v in x.items()]]
    if isinstance(x, (np.ndarray, np.generic)):
        return [type(x).__name__, str(x.dtype), list(x.shape), x.tobytes().hex()]
    return [type(x).__name__, re.sub(r"0x[0-9a-f]+", "0x", repr(x))]


def outcome(do: Any) -> Any:
    try:
        return described(do())
    except Exception as error:
        return ["error", type(error).__name__]


def arrays() -> dict[str, Any]:
    import purax as px
    import purax.numpy as jnp

    values = {
        "f32[3]": jnp.asarray([1.0, -0.0, np.nan], np.float32),
        "f32[]": jnp.asarray(-0.0, np.float32),
        "weak f32[]": jnp.asarray(2.0),
        "weak i32[]": jnp.asarray(3),
        "f32[2,3]": jnp.arange(6.0, dtype=np.float32).reshape(2, 3),
        "f32[0]": jnp.zeros(0, np.float32),
        "f32[1]": jnp.ones(1, np.float32),
        "i32[3]": jnp.asarray([1, -2, 2**31 - 1], np.int32),
        "i8[3]": jnp.asarray([127, -128, 0], np.int8),
        "u8[]": jnp.asarray(255, np.uint8),
        "bool[3]": jnp.asarray([True, False, True]),
        "bool[]": jnp.asarray(True),
        "f16[3]": jnp.asarray([1, 2, 60000], np.float16),
        "bf16[3]": jnp.asarray([1, 2, 3], jnp.bfloat16),
        "c64[3]": jnp.asarray([1j, 2, np.nan], np.complex64),
        "key": px.random.key(0),
    }
    placed = px.device_put(np.arange(3.0, dtype=np.float32), px.devices()[0])
    computed = px.jit(lambda x: x * 2)(np.arange(3.0, dtype=np.float32))
    return {**values, "placed f32[3]": placed, "computed f32[3]": computed}


def others() -> dict[str, Any]:
    import purax as px

    return {
        "True": True,
        "0": 0,
        "1": 1,
        "-3": -3,
        "300": 300,
        "2**31": 2**31,
        "2**40": 2**40,
        "2**70": 2**70,
        "0.0": 0.0,
        "-0.0": -0.0,
        "1.5": 1.5,
        "1e300": 1e300,
        "nan": float("nan"),
        "1j": 1j,
        "Whole(2)": Whole(2),
        "Real(2.5)": Real(2.5),
        "np.bool_": np.bool_(True),
        "np.int8": np.int8(-3),
        "np.int64": np.int64(5),
        "np.float16": np.float16(2),
        "np.float32": np.float32(-0.0),
        "np.float64": np.float64(0.1),
        "np.complex64": np.complex64(1j),
        "numpy f32[3]": np.arange(3, dtype=np.float32),
        "numpy f64[3]": np.arange(3.0),
        "numpy i64[]": np.asarray(7),
        "numpy f32[2,1]": np.ones((2, 1), np.float32),
        "numpy str": np.asarray(["a"]),
        "numpy object": np.asarray([None, 1], object),
        "own": np.arange(3.0, dtype=np.float32).view(Own),
        "None": None,
        "'a'": "a",
        "[1.0, 2.0, 3.0]": [1.0, 2.0, 3.0],
        "(1, 2, 3)": (1, 2, 3),
        "Fraction": Fraction(1, 3),
        "Takes": Takes(),
        "AsArray": AsArray(),
        "AsIndex": AsIndex(),
        "type": int,
        "ShapeDtypeStruct": px.ShapeDtypeStruct((3,), np.float32),
        "Ellipsis": Ellipsis,
    }


OPERATORS = ["add", "sub", "mul", "truediv", "lt", "le", "eq", "ne", "gt", "ge"]


def operators(numbers: random.Random) -> Iterator[Case]:
    own = arrays()
    pool = {**own, **others()}
    for (a, x), (b, y) in itertools.product(pool.items(), pool.items()):
        if a in own or b in own:
            for name in OPERATORS:
                # twice: numbers and plans are remembered at the first time
                yield f"{a} {name} {b}", partial(twice, getattr(operator, name), x, y)


def twice(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        function(*args, **kwargs)
    except Exception:
        pass
    return function(*args, **kwargs)


def transformed(numbers: random.Random) -> Iterator[Case]:
    """Operators, indices and shapes on tracers, and beside them."""
    import purax as px

    own, rest = arrays(), others()
    pool = {**own, **rest}
    inner = {
        "jit": lambda f, x: px.jit(f)(x),
        "jaxpr": lambda f, x: str(px.make_jaxpr(f)(x)),
        "vmap": lambda f, x: px.vmap(f)(x),
        "jvp": lambda f, x: px.jvp(f, (x,), (x,)),
        "vjp": lambda f, x: (lambda y, back: (y, back(y)))(*px.vjp(f, x)),
        "vmap of jvp": lambda f, x: px.vmap(lambda y: px.jvp(f, (y,), (y,)))(x),
        "jvp of vmap": lambda f, x: px.jvp(px.vmap(f), (x,), (x,)),
    }
    for number in range(400):
        how, a, b = numbers.choice(list(inner)), numbers.choice(list(own)), numbers.choice(list(pool))
        name, flip = numbers.choice(OPERATORS), numbers.random() < 0.5
        x, y, op = own[a], pool[b], getattr(operator, name)
        if numbers.random() < 0.3:
            y, b = {"itself": (None, "itself"), "other": (x, a)}[numbers.choice(["itself", "other"])]

        def f(z, y=y, b=b, op=op, flip=flip):
            return op(*((z, z) if b == "itself" else (y, z) if flip else (z, y)))

        # often enough for rules to be recorded as programs
        yield f"{how}: {a} {name} {b} {flip} {number}", partial(repeated, 20, inner[how], f, x)


def repeated(count: int, function: Any, *args: Any) -> Any:
    for _ in range(count - 1):
        function(*args)
    return function(*args)


def an_index(numbers: random.Random, ndim: int) -> Any:
    def bound() -> Any:
        plain = [None, 0, 0, -1, 1, 5, -7]
        if is_plain or numbers.random() < 0.7:
            return numbers.choice(plain)
        return numbers.choice(
            [2**70, -(2**70), np.int64(1), Whole(1), AsIndex(), True, 1.0, np.asarray(1), "a"]
        )

    def a_slice() -> slice:
        step = numbers.choice([None, 1, 2, -1, -3]) if numbers.random() < 0.8 else bound()
        return slice(bound(), bound(), step)

    is_plain = numbers.random() < 0.6

    def entry() -> Any:
        kind = numbers.random()
        if is_plain and kind > 0.85:
            return Ellipsis
        if kind < 0.4:
            return bound()
        if kind < 0.7 or is_plain:
            return a_slice()
        import purax.numpy as jnp

        rest = [
            Ellipsis,
            None,
            True,
            False,
            np.bool_(True),
            [0, 1],
            [],
            np.asarray([1, 0]),
            "a",
            1.5,
            (0, 1),
            {},
        ]
        return numbers.choice(
            [*rest, jnp.asarray([0, -1]), jnp.asarray(1), np.asarray([True, False]), Row([0]), Pair(0)]
        )

    count = numbers.randrange(1, ndim + 2) if numbers.random() < 0.8 else numbers.randrange(13)
    if count == 1 and numbers.random() < 0.8:
        return entry()
    entries = [entry() for _ in range(count)]
    return numbers.choice([tuple, tuple, tuple, tuple, list, Row])(entries)


def indices(numbers: random.Random) -> Iterator[Case]:
    import purax as px
    import purax.numpy as jnp

    shapes = [(), (3,), (2, 3), (0, 2), (2, 3, 4), (1,) * 9, (70, 80)]
    pool = [jnp.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) for shape in shapes]
    pool += [px.random.key(0), px.random.split(px.random.key(1), 3), px.jit(lambda: jnp.arange(6.0))()]
    for number in range(3000):
        x = numbers.choice(pool)
        index = an_index(numbers, x.ndim)
        yield f"{x.shape}[{index!r}] {number}", partial(operator.getitem, x, index)
        if number % 8 == 0:
            how = numbers.choice(["jit", "vmap", "jvp"])
            if how == "jit":
                yield f"jit {x.shape}[{index!r}]", partial(px.jit(lambda x, i=index: x[i]), x)
            elif how == "vmap":
                yield f"vmap {x.shape}[{index!r}]", partial(px.vmap(lambda x, i=index: x[i]), x)
            else:
                f = lambda x, i=index: px.jvp(lambda y: y[i], (x,), (x,))  # noqa: E731
                yield f"jvp {x.shape}[{index!r}]", partial(f, x)


def shapes(numbers: random.Random) -> Iterator[Case]:
    import purax as px
    import purax.numpy as jnp

    pool = [jnp.arange(n, dtype=np.float32) for n in (0, 1, 2, 6, 24, 256, 4096)]
    pool += [jnp.arange(24.0).reshape(2, 3, 4), jnp.asarray(3), px.random.split(px.random.key(1), 4)]
    pool += [jnp.ones((2,) * 9), px.jit(lambda: jnp.arange(6.0))(), np.arange(3)]
    sizes = [
        1,
        1,
        1,
        2,
        2,
        3,
        -1,
        0,
        4,
        6,
        256,
        -2,
        2**70,
        Whole(2),
        True,
        np.int64(2),
        np.int8(1),
        2.0,
        None,
        "2",
    ]
    sizes += [
        AsIndex(),
        jnp.asarray(2),
        np.asarray(2),
        (2, 3),
        [2, 3],
        Row([6]),
        Pair(3, 2),
        (),
        [],
        -1,
        2,
        3,
    ]
    for number in range(4000):
        x, count = numbers.choice(pool), numbers.randrange(13)
        size = int(np.prod(np.shape(x), dtype=int))
        if numbers.random() < 0.5 and size:  # sizes that fit
            args, left = [], size
            while len(args) < count - 1:
                args.append(numbers.choice([d for d in (1, 2, 3, 4) if left % d == 0]))
                left //= args[-1]
            args = [*args, left] if count else []
            if numbers.random() < 0.3:
                args = [numbers.choice([tuple, list, Row])(args)]
        else:
            args = [numbers.choice(sizes) for _ in range(count)]
        named = {}
        if numbers.random() < 0.4:
            named["order"] = numbers.choice(["C", "F", "A", "K", None, 0])
        if numbers.random() < 0.1:
            named["out_sharding"] = None
        if numbers.random() < 0.1:
            named[numbers.choice(["copy", "shape", "newshape", "args", "self", "x"])] = numbers.choice(
                [True, (6,), None]
            )
        text = f"{np.shape(x)}.reshape({args!r}, {named!r}) {number}"
        yield text, partial(lambda x, a, n: x.reshape(*a, **n), x, args, named)
        if number % 20 == 0:
            yield f"jit {text}", partial(px.jit(lambda x, a=args, n=named: x.reshape(*a, **n)), x)
    for x in pool:
        yield f"{np.shape(x)}.T", partial(lambda x: (x.T, x.T.T, x.mT if x.ndim > 1 else None), x)
        yield f"{np.shape(x)}.T = x", partial(setattr, x, "T", 1)
        yield f"vmap {np.shape(x)}.T", partial(px.vmap(lambda x: x.T), x)


def binds(numbers: random.Random) -> Iterator[Case]:
    import purax as px
    import purax.numpy as jnp
    from purax.primitives.elementwise.elementwise import add_p, neg_p
    from purax.primitives.shape.broadcasting import reduce_sum_p
    from purax.primitives.shape.reshaping import concatenate_p

    pool = {**arrays(), **others()}
    names = list(pool)
    params = [
        0,
        1,
        -1,
        True,
        1.0,
        None,
        (0,),
        [0],
        "a",
        np.int64(0),
        (0, 1),
        (True,),
        (np.int64(0),),
        Pair(0),
    ]
    for number in range(2500):
        p = numbers.choice([add_p, neg_p, concatenate_p, reduce_sum_p])
        chosen = [
            numbers.choice(names)
            for _ in range(numbers.randrange(13) if p is concatenate_p else numbers.randrange(4))
        ]
        if numbers.random() < 0.5:
            chosen = [numbers.choice(["f32[3]", "computed f32[3]", "numpy f32[3]", "f32[3]"])] * len(chosen)
        named = {}
        for name in ("dimension", "axes", "unknown"):
            if numbers.random() < 0.6 - 0.55 * (name == "unknown"):
                named[name] = numbers.choice(params)
        if numbers.random() < 0.6:
            named = {concatenate_p: {"dimension": 0}, reduce_sum_p: {"axes": (0,)}}.get(p, {})
        operands = [pool[name] for name in chosen]
        text = f"{p.name}.bind({chosen}, {named!r}) {number}"
        yield text, partial(twice, p.bind, *operands, **named)
        if number % 5 == 0 and operands:
            f = lambda x, p=p, rest=operands[1:], named=named: p.bind(x, *rest, **named)  # noqa: E731
            yield f"jaxpr {text}", lambda f=f, x=operands[0]: str(px.make_jaxpr(f)(x))
            yield f"vmap {text}", partial(repeated, 20, px.vmap(f), jnp.ones((2, 3)))
            yield f"jvp {text}", partial(repeated, 20, lambda x, f=f: px.jvp(f, (x,), (x,)), operands[0])


def a_tree(numbers: random.Random, pool: dict[str, Any], depth: int = 0) -> Any:
    kind = numbers.random()
    if depth > 3 or kind < 0.45:
        return pool[numbers.choice(list(pool))]
    parts = [a_tree(numbers, pool, depth + 1) for _ in range(numbers.randrange(4))]
    if kind < 0.6:
        # Keys that cannot be sorted are an error, at each of which jaxlib loses some of Python's recursion depth.
        kinds = [["a", "b", "c", "long"], [1, True, 2.5, 0.0, -0.0], [(1, 2), (1,), ("a", 1)[1:]]]
        some = numbers.choice(kinds)
        keys = [numbers.choice(some) for _ in parts]
        return numbers.choice([dict, dict, collections.OrderedDict])(zip(keys, parts, strict=True))
    if kind < 0.65:
        return None
    if kind < 0.7:
        return Pair(*(parts[:2] or [None]))
    return numbers.choice([list, tuple, tuple, list, Row])(parts)


def calls(numbers: random.Random) -> Iterator[Case]:
    """Calls of compiled functions, each twice in a row and once more at the end."""
    import purax as px

    plain = {k: v for k, v in arrays().items() if k != "key"}
    pool = {**plain, **plain, **others(), "key": arrays()["key"]}
    names = ["a", "b", "c", "d"]

    def received(traced, *args, **kwargs):
        traced.append(1)
        return px.tree.map(lambda x: x, (args, kwargs)), len(traced)

    for number in range(160):
        options: dict[str, Any] = {}
        if numbers.random() < 0.4:
            options["static_argnums"] = numbers.choice([0, 1, -1, (0, 2), (1, -1)])
        if numbers.random() < 0.4:
            options["static_argnames"] = numbers.choice(["a", ("a", "c")])
        if numbers.random() < 0.2:
            options["donate_argnums"] = numbers.choice([0, 1])
        traced: list[int] = []
        try:
            f = px.jit(partial(received, traced), purity="off", **options)
        except ValueError:  # both static and donated
            continue
        made = []
        for _ in range(8):
            source = plain if numbers.random() < 0.5 else pool
            values = [
                source[numbers.choice(list(source))] if numbers.random() < 0.6 else a_tree(numbers, source)
                for _ in range(numbers.choice([0, 1, 1, 2, 2, 3, 12]))
            ]
            given = numbers.sample(names, numbers.choice([0, 0, 1, 2, 4]))
            named = {name: source[numbers.choice(list(source))] for name in given}
            if numbers.random() < 0.05:
                named = {f"n{i}": numbers.choice([1, 2.0]) for i in range(40)}
            made.append((values, named))
        for turn, (values, named) in enumerate([*made, *made, *made]):
            text = f"{number}/{turn} {options} {values!r} {named!r}"
            yield f"call {text}", partial(twice, f, *values, **named)
            yield f"count {text}", partial(len, traced)


def numbers_in_lists(numbers: random.Random) -> Iterator[Case]:
    import purax.numpy as jnp

    pool = [
        0,
        1,
        -1,
        2.5,
        -0.0,
        True,
        1j,
        2**31,
        2**70,
        Whole(1),
        Real(0.5),
        np.float32(1),
        np.int8(3),
        None,
        "a",
    ]
    pool += [[1], (2,), [1.0], float("nan"), np.asarray(1.0), jnp.asarray(2)]
    for number in range(1500):
        kind = numbers.choice([list, list, list, tuple, Row])
        some = numbers.sample(pool, 3) if numbers.random() < 0.7 else [1, 2, 3.0]
        values = kind(numbers.choice(some) for _ in range(numbers.randrange(6)))
        dtype = numbers.choice([None, None, None, np.int8, np.float32, bool, complex])
        yield f"asarray({values!r}, {dtype}) {number}", partial(jnp.asarray, values, dtype)


def choices(numbers: random.Random) -> Iterator[Case]:
    import purax.numpy as jnp

    kinds = ["?", "i1", "u2", "f2", "f4", "i4", "c8"]
    for number in range(400):
        shape = numbers.choice([(), (3,), (2, 3), (5000,), (70, 80), (0,)])
        random_numbers = np.random.default_rng(number)
        mask = random_numbers.random(numbers.choice([shape, shape, ()])) < 0.5
        x, y = [(random_numbers.random(shape) * 9).astype(numbers.choice(kinds)) for _ in range(2)]
        if numbers.random() < 0.5:
            y = y.astype(x.dtype)
        if numbers.random() < 0.2:
            mask = (random_numbers.random(mask.shape) * 2).astype("i4")
        if numbers.random() < 0.3:
            mask, x, y = mask.T, x.T, y.T
        text = f"where({mask.shape} {mask.dtype}, {x.dtype}, {y.dtype}) {number}"
        yield text, partial(lambda *a: jnp.where(*map(jnp.asarray, a)), mask, x, y)


def programs(numbers: random.Random) -> Iterator[Case]:
    """What is recorded, with the user's lines, and run forwards and backwards."""
    import purax as px
    import purax.numpy as jnp

    steps = {
        "sin": jnp.sin,
        "square": lambda x: x * x,
        "sum": lambda x: x + jnp.sum(x, keepdims=True),
        "index": lambda x: x[::-1] - x[:1],
        "where": lambda x: jnp.where(x > 0, x, -2.0 * x),
        "dot": lambda x: x * (x @ x),
        "exp": lambda x: jnp.exp(-x),
        "cumsum": jnp.cumsum,
        "join": lambda x: jnp.concatenate([x, x])[2:5],
        "cast": lambda x: x.astype(jnp.float16).astype(jnp.float32),
        "jit": px.jit(lambda x: jnp.tanh(x) * 3),
        "scan": lambda x: px.lax.scan(lambda c, y: (c * y, c + y), 1.0, x)[1],
        "divide": lambda x: 1 / (x + 3),
        "named": lambda x: px.named_scope("part")(jnp.cos)(x),
    }
    for number in range(50):
        chosen = [numbers.choice(list(steps)) for _ in range(numbers.randrange(1, 6))]

        def f(x, chosen=chosen):
            for name in chosen:
                x = steps[name](x)
            return x

        x = jnp.asarray([0.5, -1.0, 2.0])
        loss = lambda x, f=f: f(x).sum()  # noqa: E731
        text = f"{chosen} {number}"
        yield f"program {text}", partial(lambda f, x: str(px.make_jaxpr(f)(x)), f, x)
        yield f"lines {text}", partial(lines_of, f, x)
        yield f"eager {text}", partial(f, x)
        yield f"grad {text}", partial(repeated, 20, px.grad(loss), x)
        yield f"vmap {text}", partial(repeated, 20, px.vmap(f), jnp.stack([x, x + 1]))
        yield f"jvp {text}", partial(repeated, 20, lambda x, f=f: px.jvp(f, (x,), (x,)), x)
        yield f"hessian {text}", partial(repeated, 4, px.jacfwd(px.grad(loss)), x)


def lines_of(f: Any, x: Any) -> list[str]:
    import purax as px

    return [f"{e.source.line} {e.source.function} {e.scope}" for e in px.make_jaxpr(f)(x).eqns]


GENERATORS = [operators, transformed, indices, shapes, binds, calls, numbers_in_lists, choices, programs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="store_true", help="without the versions in C")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.python:
        sys.modules["purax.core._bind"] = sys.modules["purax.execution._dispatch"] = None  # type: ignore[assignment]
    from purax.core import primitive
    from purax.execution import dispatch

    assert (primitive.native is None) == (dispatch.native is None) == options.python
    for generator in GENERATORS:
        if options.only in ("", generator.__name__):
            for text, do in generator(random.Random(options.seed)):
                text = re.sub(r"0x[0-9a-f]+", "0x", text)
                print(json.dumps([generator.__name__, text, outcome(do)]))


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
