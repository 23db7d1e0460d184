"""Small functions in plain Python control flow, each with the arguments to try: what `test_control_flow.py` runs.

Arguments are Python numbers; the test makes arrays of them, so that every branch is decided by a traced value.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, NamedTuple

import purax as px
import purax.numpy as jnp

CASES: list[tuple[Any, tuple[tuple, ...]]] = []
SIGNS = ((2.0,), (-3.0,), (0.0,))
COUNTS = ((0,), (1,), (4,), (9,))


def case(*arguments: tuple):
    """Adds a function to the table."""

    def add(function):
        CASES.append((function, arguments))
        return function

    return add


# -- if


@case(*SIGNS)
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


@case(*SIGNS)
def if_without_else(x):
    y = x + 1
    if x > 0:
        y = y * 10
    return y


@case(*SIGNS, (20.0,))
def elif_chain(x):
    if x > 10:
        y = 1
    elif x > 0:
        y = 2
    elif x == 0:
        y = 3
    else:
        y = 4
    return y


@case(*SIGNS)
def integer_and_float(x):
    if x > 0:
        y = 1
    else:
        y = x / 2
    return y


@case((1.0, 2.0), (2.0, 1.0), (-1.0, 5.0), (-1.0, -9.0))
def nested_if(x, y):
    if x > 0:
        if y > x:
            z = y - x
        else:
            z = x - y
            z = z * 3
    else:
        z = 0.0
        if y < 0:
            z = y
    return z


@case(*SIGNS)
def several_variables(x):
    a, b = x, x + 1
    if x > 0:
        a, b = b, a
        c = a * b
    else:
        c = a - b
    return a, b, c


@case(*SIGNS)
def temporary_in_one_branch(x):
    y = x
    if x > 0:
        doubled = x * 2
        y = doubled + 1
    return y


@case(*SIGNS)
def temporaries_of_unlike_shapes(x):
    if x > 0:
        t = jnp.ones(3) * x
        y = t.sum()
    else:
        t = x
        y = t
    return y


@case(*SIGNS)
def truth_of_a_number(x):
    if x:
        return x + 1
    return x - 1


@case(*SIGNS)
def pass_in_a_branch(x):
    if x > 0:
        pass
    else:
        x = -x
    return x


@case(*SIGNS)
def concrete_and_traced_conditions(x):
    scale = 3
    if scale > 2:
        if x > 0:
            scale = 5
    else:
        scale = x
    return x * scale


@case(*SIGNS)
def dict_in_branches(x):
    if x > 0:
        state = {"a": x, "b": (x, 1)}
    else:
        state = {"a": -x, "b": (x * 0, 2)}
    return state


@case(*SIGNS)
def dict_changed_in_a_branch(x):
    state = {"a": x, "b": 1.0}
    if x > 0:
        state["a"] = x * 7
    else:
        state["b"] += 2
    return state


@case(*SIGNS)
def list_element_changed_in_a_branch(x):
    values = [x, x, x]
    alias = values
    if x > 0:
        values[1] = 5.0
    return alias


@case(*SIGNS)
def none_in_both_branches(x):
    if x > 0:
        y, z = None, x
    else:
        y, z = None, -x
    return y, z


class Point(NamedTuple):
    x: Any
    y: Any


@case(*SIGNS)
def named_tuple(x):
    if x > 0:
        p = Point(x, 1)
    else:
        p = Point(0, x)
    return p._replace(x=p.x + 1)


@px.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    def larger(self):
        if self.a > self.b:
            return self.a
        return self.b


@case(*SIGNS)
def registered_class(x):
    p = Pair(x, 1.0)
    if x < 0:
        p = Pair(2.0, -x)
    return p.larger()


@case(*SIGNS)
def attribute_changed_in_a_branch(x):
    p = Pair(x, 1.0)
    if x > 0:
        p.a = p.a * 3
    else:
        p.b = x
    return p.a, p.b


@case(*SIGNS)
def strings_that_agree(x):
    mode = "slow"
    if x > 0:
        mode = "fast"
        y = x
    else:
        mode = "fast"
        y = -x
    return y * len(mode)


@case(*SIGNS)
def deleted_variable(x):
    if x > 0:
        t = x + 1
        y = t
        del t
    else:
        y = x
    return y


@case(*SIGNS)
def annotated_assignment(x):
    if x > 0:
        y: float = x
    else:
        y: float = 2 * x
    return y


@case(*SIGNS)
def function_defined_in_a_branch(x):
    if x > 0:

        def g(v):
            return v * 3

        y = g(x)
    else:
        y = x
    return y


# -- early return


@case(*SIGNS)
def early_return(x):
    if x > 0:
        return x * 2
    return -x


@case((15.0,), (5.0,), (-1.0,))
def ladder_of_returns(x):
    if x > 10:
        return x
    if x > 0:
        return x * 2
    return 0.0


@case(*SIGNS)
def return_in_one_of_three(x):
    if x > 0:
        y = x
    elif x < 0:
        return x * 100
    else:
        y = 7.0
    y = y + 1
    return y


@case((1.0, 1.0), (1.0, -1.0), (-1.0, 3.0))
def return_deep_inside(x, y):
    if x > 0:
        if y > 0:
            return x + y
        x = x * 10
    else:
        x = x - 1
    x = x + 0.5
    return x * y


@case(*SIGNS)
def return_a_tuple(x):
    if x > 0:
        return x, {"n": 1}
    return -x, {"n": 2}


@case(*SIGNS)
def return_none_in_both(x):
    if x > 0:
        return None
    else:
        return None


@case(*SIGNS)
def code_after_the_last_return(x):
    if x > 0:
        return 1.0
    else:
        return 2.0
    return 3.0


@case(*SIGNS)
def return_in_with(x):
    with px.named_scope("inner"):
        if x > 0:
            return x * 2
        x = x - 1
    return x


@case((3,), (12,), (200,))
def return_in_a_loop(n):
    total = 0
    while total < 100:
        total = total + n
        if total > 50:
            return total
    return -1


@case((3,), (12,), (200,))
def return_out_of_two_loops(n):
    i = 0
    while i < n:
        j = 0
        while j < i:
            if i * j > 20:
                return i, j
            j += 1
        i += 1
    return n, n


# -- expressions


@case(*SIGNS)
def conditional_expression(x):
    return x * 2 if x > 0 else -x


@case(*SIGNS)
def nested_conditional_expressions(x):
    return 1.0 if x > 1 else 2.0 if x > -1 else (3.0 if x > -2 else x)


@case((1.0, 2.0), (1.0, -2.0), (-1.0, 2.0), (-1.0, -2.0))
def and_or_not_in_a_test(x, y):
    if x > 0 and y > 0:
        return 1
    elif not (x > 0 or y > 0):
        return 2
    return 3


@case((1.0, 2.0), (0.0, 2.0), (0.0, 0.0))
def value_of_or(x, y):
    return x or y or 5.0


@case((1.0, 2.0), (0.0, 2.0), (3.0, 0.0))
def value_of_and(x, y):
    return x and y and x + y


@case(*SIGNS)
def flags(x):
    positive = x > 0
    large = positive and x > 1
    return large or not positive


@case(*SIGNS)
def concrete_and_traced_operands(x):
    verbose = False
    a = verbose and x > 0
    b = not verbose and x > 0
    c = verbose or x > 0
    return a, b, c


@case(*SIGNS)
def short_circuit_of_a_concrete_operand(x):
    table = None
    if table is not None and table[0] > x:
        return x
    return x + 1


@case((0.5,), (3.0,), (-1.0,))
def chained_comparison(x):
    if 0 < x < 1:
        return 1.0
    return 2.0


@case((1, 2, 3), (3, 2, 1), (1, 3, 2))
def long_chain(a, b, c):
    return a < b <= c != a


@case((1,), (3,), (7,))
def membership(x):
    if x in (1, 2, 3):
        return 1
    return 0 if x not in [7, 8] else 2


@case((2.0,), (9.0,))
def membership_in_an_array(x):
    return 1 if x in jnp.arange(4.0) else 0


@case(*SIGNS)
def negation(x):
    inverse = not x
    return inverse


@case((1.0, 2.0), (3.0, 2.0))
def extremes(x, y):
    return max(x, y), min(x, y, 1.5), max([x, y], key=lambda v: -v)


@case(*SIGNS)
def any_and_all(x):
    return any(x > v for v in (1, 5)), all([x > 0, True, x < 5])


@case(*SIGNS)
def bool_of_a_number(x):
    return bool(x), bool(x > 0) and True


@case(*SIGNS)
def comprehension(x):
    return [v if x > v else -v for v in (1.0, -1.0, -5.0)]


@case(*SIGNS)
def dict_comprehension(x):
    return {k: (x if x > 0 else k) for k in (1, 2)}


@case(*SIGNS)
def lambdas(x):
    f = lambda v: v + 1 if v > 0 else v - 1  # noqa: E731
    return f(f(x))


@case(*SIGNS)
def walrus_in_a_test(x):
    if (y := x * 2) > 1:
        return y
    return y - 1


@case(*SIGNS)
def walrus_in_a_branch(x):
    y = 0.0
    if x > 0:
        z = (y := x * 3) + 1
    else:
        z = 1.0
    return y, z


# -- while


@case((1.0,), (100.0,), (3.5,))
def halve(x):
    while x > 1:
        x = x / 2
    return x


@case((1,), (6,), (27,))
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@case((0,), (1,), (48,))
def gcd(n):
    a, b = n, 18
    while b:
        a, b = b, a % b
    return a


@case((1,), (10,), (100,))
def while_with_break(n):
    i = 0
    while True:
        i += 1
        if i * i > n:
            break
    return i


@case((1,), (10,), (13,))
def while_with_continue(n):
    total = 0
    while n > 0:
        n -= 1
        if n % 3 == 0:
            continue
        total += n
    return total


@case((5,), (50,))
def while_else(n):
    found = -1
    i = 2
    while i * i <= n:
        if n % i == 0:
            found = i
            break
        i += 1
    else:
        found = 0
    return found


@case((1.0,), (7.0,))
def integer_that_becomes_a_float(x):
    total = 0
    while x > 0:
        total = total + x / 2
        x = x - 1
    return total


@case((2.0, 1e-3), (10.0, 1e-6))
def newton(a, tolerance):
    x = a
    while abs(x * x - a) > tolerance:
        x = 0.5 * (x + a / x)
    return x


@case((3,), (6,))
def while_in_while(n):
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < i:
            total += i * j
            j += 1
        i += 1
    return total


@case((3,), (0,))
def loop_over_a_tree(n):
    state = {"x": 1.0, "history": (0, 0)}
    while n > 0:
        state = {"x": state["x"] * 2, "history": (state["history"][1], n)}
        n = n - 1
    return state


@case((3,), (6,))
def element_changed_in_a_loop(n):
    state = {"x": 1.0, "n": 0}
    while n > 0:
        state["x"] = state["x"] * 2
        state["n"] += 1
        n -= 1
    return state


@case((3,), (10,))
def bounded_by_two_conditions(n):
    i, x = 0, 1.0
    while i < 5 and x < n:
        x = x * 1.5
        i += 1
    return i, x


@case((4.0,), (1.0,))
def temporary_in_a_loop(x):
    while x > 1:
        y = x / 2
        x = y
    return x


@case((4.0,), (1.0,))
def variable_of_the_first_turn(x):
    while True:
        y = x * 2
        x = y + 1
        if x > 10:
            break
    return y


@case((5,), (2,))
def walrus_in_while(n):
    total = 0
    while (m := n - 1) > 0:
        total += m
        n = m
    return total, m


@case((5,), (2,))
def array_updated_in_a_loop(n):
    x = jnp.zeros(6)
    i = 0
    while i < n:
        x = x.at[i].set(i * 2.0)
        i += 1
    return x


# -- for


@case(*COUNTS)
def for_over_a_range(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


@case((1, 9, 3), (9, 1, -2), (3, 3, 1), (0, 7, 2))
def range_with_three_bounds(start, stop, step):
    total = 0
    for i in range(start, stop, step):
        total = total * 2 + i
    return total


@case(*COUNTS)
def reversed_range(n):
    total = 0.0
    for i in reversed(range(n)):
        total = total / 2 + i
    return total


@case(*COUNTS)
def enumerated_range(n):
    total = 0
    for k, i in enumerate(range(2, n)):
        total += k * i
    return total


@case((0.0,), (3.7,))
def range_of_int(x):
    total = 0
    for i in range(int(x)):
        total += i + 1
    return total


@case(*COUNTS)
def for_with_break(n):
    total = 0
    for i in range(n):
        if total > 5:
            break
        total += i
    return total


@case(*COUNTS)
def for_with_continue(n):
    total = 0
    for i in range(n):
        if i % 2:
            continue
        total += i
    return total


@case(*COUNTS)
def for_else(n):
    for i in range(n):
        if i == 3:
            result = -1
            break
        result = i
    else:
        result = 100
    return result


@case((0.5,), (3.0,), (100.0,))
def concrete_range_with_break(x):
    total = 0.0
    for i in range(10):
        total = total + i
        if total > x:
            break
    return total


@case((0.5,), (3.0,), (100.0,))
def concrete_range_with_return(x):
    total = 0.0
    for i in range(10):
        total = total + i
        if total > x:
            return i
    return -1


@case((0.5,), (3.0,), (100.0,))
def number_of_the_step_in_a_list(x):
    weights = [1.0, 2.0, 3.0, 4.0]
    total = 0.0
    for i in range(4):
        total = total + weights[i]
        if total > x:
            break
    return total


@case((0.5,), (3.0,), (100.0,))
def list_with_break(x):
    total = 0.0
    for w in [1.0, 2.0, 3.0, 4.0]:
        if total > x:
            break
        total = total + w
    return total


@case((0.5,), (3.0,), (100.0,))
def array_with_break(x):
    total = 0.0
    for w in jnp.arange(1.0, 6.0):
        total = total + w
        if total > x:
            break
    return total


@case((0.5,), (3.0,))
def zip_with_continue(x):
    total = 0.0
    for a, b in zip((1.0, 2.0), (3.0, 4.0), strict=True):
        if a > x:
            continue
        total = total + a * b
    return total


@case((3,), (5,))
def for_in_for(n):
    total = 0
    for i in range(n):
        for j in range(i, n):
            if j % 2 == 0:
                total += i * j
    return total


@case((3,), (5,))
def while_in_for_in_if(n):
    total = 0
    if n > 3:
        for i in range(n):
            while total < i * 2:
                total += 1
    else:
        total = -n
    return total


@case((3,), (8,))
def break_of_the_inner_loop(n):
    total = 0
    for i in range(n):
        for j in range(5):
            if j >= i:
                break
            total += 1
    return total


@case((3,), (8,))
def if_break_elif_continue_else(n):
    total = 0
    for i in range(n):
        if i == 6:
            break
        elif i % 2:
            continue
        else:
            y = i * i
        total += y
    return total


@case((2,), (5,))
def loop_over_concrete_range_with_if(n):
    total = 0
    for i in range(4):
        if i < n:
            total += i
    return total


# -- functions


def sign(x):
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0


@case(*SIGNS)
def helper(x):
    return sign(x) * 10 + sign(-x)


@case(*SIGNS)
def helper_passed_to_functions(x):
    return list(map(sign, [x, x + 2])), functools.reduce(lambda a, b: a if a > b else b, [x, 1.0, -x])


@case(*SIGNS)
def partial_application(x):
    def scaled(factor, v):
        return v * factor if v > 0 else v

    return functools.partial(scaled, 3)(x)


@case(*SIGNS)
def closure(x):
    offset = x + 1

    def inner(v):
        if v > 0:
            return v + offset
        return v - offset

    return inner(x)


@case(*SIGNS)
def closure_that_assigns(x):
    count = 0

    def add(v):
        nonlocal count
        if v > 0:
            count = count + 1

    add(x)
    add(-x)
    add(x * 0 + 1)
    return count


@case(*SIGNS)
def keyword_arguments(x):
    def inner(v, *rest, scale=2, **more):
        if v > 0:
            return v * scale + sum(rest)
        return v - more["shift"]

    return inner(x, 1, 2, shift=4), inner(-x, scale=3, shift=1)


class Scaler:
    def __init__(self, factor):
        self.__factor = factor

    def __call__(self, x):
        return self.scale(x) if x > 0 else x

    def scale(self, x):
        if x > 1:
            return x * self.__factor
        return x

    @staticmethod
    def clip(x):
        return 1.0 if x > 1 else x

    @classmethod
    def twice(cls, x):
        return cls(2).scale(x)

    @property
    def factor(self):
        return self.__factor


class LoudScaler(Scaler):
    def scale(self, x):
        if x > 0:
            return super().scale(x) + 1
        return x


@case(*SIGNS)
def methods(x):
    s = LoudScaler(3)
    return s.scale(x), s(x), Scaler.clip(x), LoudScaler.twice(x), s.factor


@case(*SIGNS)
def transformed_helper(x):
    batch = jnp.stack([x, -x, x * 0])
    slope = px.grad(lambda v: v * v if v > 0 else -v)
    return px.vmap(sign)(batch), slope(x), px.jvp(halve, (jnp.abs(x),), (jnp.ones(()),))


batched_sign = px.vmap(sign)


@case(*SIGNS)
def function_transformed_outside(x):
    return batched_sign(jnp.stack([x, -x]))


@case(*SIGNS)
def nested_jit(x):
    @px.jit
    def inner(v):
        return v + 1 if v > 0 else v

    return inner(x) + inner(-x)


@case((2.0,), (30.0,))
def branch_in_scan(x):
    def step(carry, v):
        if carry > 10:
            carry = carry / 2
        else:
            carry = carry + v
        return carry, carry

    return px.lax.scan(step, x, jnp.arange(5.0))


@case((2.0,), (30.0,))
def branch_in_fori_loop_and_cond(x):
    y = px.lax.fori_loop(0, 4, lambda i, v: v * 2 if v < 9 else v - i, x)
    return px.lax.cond(y > 5, lambda v: v if v > 6 else -v, lambda v: 0.0, y)


@case((3,), (7,))
def operators_as_functions(n):
    return functools.reduce(operator.add, [n if n > 5 else 1, 2])


def apply_twice(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(function(*args))

    return wrapper


@case(*SIGNS)
@apply_twice
def decorated(x):
    return x - 1 if x > 0 else x


# -- try, with, assert, raise


@case(*SIGNS)
def branch_in_try(x):
    try:
        if x > 0:
            y = x * 2
        else:
            y = x
    except ZeroDivisionError:
        y = 0.0
    finally:
        z = 1
    return y + z


@case((2.0,), (5.0,))
def assertions(x):
    assert x > 1, "x must be larger than 1"
    assert x < 10
    return x * 2


@case((2.0,), (5.0,))
def raise_in_a_branch(x):
    if x < 0:
        raise ValueError(f"negative: {x}")
    if x > 100:
        message = "too large"
        raise ValueError(message)
    return x * 2


@case((2.0,), (5.0,))
def raise_in_else(x):
    if x > 0:
        y = x
    else:
        raise ValueError("not positive")
    return y


@case((2,), (1,))
def match_on_concrete_values(n):
    kind = "add"
    match kind:
        case "add":
            y = n + 1 if n > 1 else n
        case _:
            y = n
    return y


# -- random keys and other dtypes


@case((1,), (5,))
def random_keys(n):
    key = px.random.key(0)
    total = 0.0
    while n > 0:
        key, sub = px.random.split(key)
        total = total + px.random.normal(sub)
        n = n - 1
    return total


@case((1.0,), (5.0,))
def complex_numbers(x):
    z = 0j
    n = 0
    while abs(z) < 2 and n < 50:
        z = z * z + x / 4
        n += 1
    return n
