"""More functions in plain Python control flow, as they stand in programs; `test_control_flow.py` runs them.

Arguments are Python numbers or lists; the test makes arrays of them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import purax as px
import purax.numpy as jnp
from purax import lax

CASES: list[tuple[Any, tuple[tuple, ...]]] = []


def case(*arguments: tuple):
    """Adds a function to the table."""

    def add(function):
        CASES.append((function, arguments))
        return function

    return add


SIGNS = ((2.0,), (-3.0,), (0.0,))
COUNTS = ((0,), (1,), (4,), (9,))
VECTORS = (([1.0, 5.0, 3.0, 2.0],), ([-1.0, -5.0, -3.0, -2.0],), ([0.0, 2.0, -4.0, 9.0],))

# -- number theory and searching


@case((12, 18), (7, 3), (100, 75))
def greatest_common_divisor(a, b):
    while b:
        a, b = b, a % b
    return a


@case((2,), (9,), (13,), (25,), (1,))
def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


@case((3, 10), (2, 0), (5, 5))
def power_by_squaring(base, exponent):
    result = 1
    while exponent > 0:
        if exponent % 2 == 1:
            result = result * base
        base = base * base
        exponent //= 2
    return result


@case((1234,), (0,), (9,))
def digit_sum(n):
    total = 0
    while n:
        n, digit = divmod(n, 10)
        total += digit
    return total


@case(*COUNTS)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case(([1.0, 3.0, 5.0, 7.0], 5.0), ([1.0, 3.0, 5.0, 7.0], 4.0), ([1.0, 3.0, 5.0, 7.0], 8.0))
def index_of(values, wanted):
    for i in range(4):
        if values[i] == wanted:
            return i
    return -1


@case(([1.0, 3.0, 5.0, 7.0], 5.0), ([1.0, 3.0, 5.0, 7.0], 4.0))
def index_of_with_else(values, wanted):
    for i, value in enumerate(values):
        if value == wanted:
            found = i
            break
    else:
        found = -1
    return found


@case(*VECTORS)
def maximum_and_its_place(values):
    best, place = values[0], 0
    for i in range(1, values.shape[0]):
        if values[i] > best:
            best, place = values[i], i
    return best, place


@case(*VECTORS)
def bubble_sort(values):
    n = len(values)
    for i in range(n):
        swapped = False
        for j in range(n - 1 - i):
            if values[j] > values[j + 1]:
                first, second = values[j], values[j + 1]
                values = values.at[j].set(second).at[j + 1].set(first)
                swapped = True
        if not swapped:
            break
    return values


@case(*VECTORS)
def insertion_sort(values):
    for i in range(1, len(values)):
        key = values[i]
        j = i - 1
        while j >= 0 and values[j] > key:
            values = values.at[j + 1].set(values[j])
            j -= 1
        values = values.at[j + 1].set(key)
    return values


@case(([1.0, 2.0, 4.0, 8.0], 3.0), ([1.0, 2.0, 4.0, 8.0], 9.0), ([1.0, 2.0, 4.0, 8.0], 0.0))
def bisect_left(values, x):
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@case((10.0,), (0.5,), (1.0,))
def square_root_by_bisection(x):
    low, high = 0.0, x if x > 1 else 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if middle * middle > x:
            high = middle
        else:
            low = middle
    return low


@case((1.5,), (-2.0,), (0.25,))
def cosine_fixed_point(x):
    steps = 0
    while True:
        new = jnp.cos(x)
        steps += 1
        if abs(new - x) < 1e-4:
            break
        if steps >= 100:
            break
        x = new
    return x, steps


@case((0.5,), (2.0,), (10.0,))
def golden_section(target):
    a, b = 0.0, 12.0
    ratio = (math.sqrt(5) - 1) / 2
    c, d = b - ratio * (b - a), a + ratio * (b - a)
    while b - a > 1e-2:
        if (c - target) ** 2 < (d - target) ** 2:
            b = d
        else:
            a = c
        c, d = b - ratio * (b - a), a + ratio * (b - a)
    return (a + b) / 2


# -- state of every kind


class Walker(NamedTuple):
    position: Any
    velocity: Any
    bounces: Any


@case((0.5, 0.4), (0.1, -0.3), (0.9, 0.05))
def a_named_tuple_of_state(position, velocity):
    state = Walker(position, velocity, 0)
    for _ in range(6):
        new = state.position + state.velocity
        if new > 1.0 or new < 0.0:
            state = state._replace(velocity=-state.velocity, bounces=state.bounces + 1)
        else:
            state = state._replace(position=new)
    return state


@px.tree_util.register_dataclass
@dataclasses.dataclass
class Particle:
    x: Any
    v: Any


@case((1.0, 0.5), (-1.0, 0.0))
def a_dataclass_of_state(x, v):
    p = Particle(x, v)
    while p.x**2 + p.v**2 > 0.1:
        force = -p.x if p.x > 0 else -2 * p.x
        v = 0.5 * p.v + 0.1 * force
        p = Particle(p.x * 0.5 + 0.1 * v, v)
    return p


@case((1.0, 0.5), (-1.0, 0.0))
def a_dataclass_changed_in_place(x, v):
    p = Particle(x, v)
    for _ in range(4):
        if p.x > 0:
            p.v = p.v - p.x
        else:
            p.v += 1
        p.x = p.x + 0.1 * p.v
    return p.x, p.v


@case((3,), (0,), (7,))
def a_dict_of_state(n):
    state = {"count": 0, "total": 0.0, "inner": {"last": 0}}
    while state["count"] < n:
        state["count"] += 1
        state["total"] = state["total"] + state["count"] * 0.5
        state["inner"]["last"] = state["count"]
    return state


@case((3,), (0,), (7,))
def a_list_of_state(n):
    stack = [0, 1]
    for _ in range(n):
        stack[0], stack[1] = stack[1], stack[0] + stack[1]
    return stack


@case((5.0,), (-5.0,))
def a_nested_tuple_of_state(x):
    state = (x, (0, True))
    while state[1][1]:
        value, (count, _) = state
        value = value * 0.5
        state = (value, (count + 1, abs(value) > 1.0))
    return state


class Account:
    rate = 0.1

    def __init__(self, balance):
        self.balance = balance
        self.fees = 0.0

    def withdraw(self, amount):
        if amount > self.balance:
            self.fees = self.fees + 1.0
            return False
        self.balance = self.balance - amount
        return True

    def grow(self, years):
        for _ in range(years):
            self.balance = self.balance * (1 + self.rate)
            if self.balance > 100:
                self.balance -= 10
        return self.balance


@case((50.0, 20.0), (50.0, 70.0))
def methods_with_state(balance, amount):
    account = Account(balance)
    first = account.withdraw(amount)
    second = account.withdraw(amount)
    return account.balance, account.fees, first, second


@case((90.0, 3), (10.0, 0), (200.0, 5))
def a_method_with_a_loop(balance, years):
    return Account(balance).grow(years)


# -- jumps


@case(*COUNTS)
def continue_and_break(n):
    total = 0
    for i in range(20):
        if i % 3 == 0:
            continue
        if i > n:
            break
        total += i
    return total, i


@case(*COUNTS)
def nested_loops_with_jumps(n):
    count = 0
    for i in range(n):
        for j in range(i + 1):
            if j == 3:
                break
            if (i + j) % 2:
                continue
            count += 1
        else:
            count += 10
    return count


@case(*COUNTS)
def while_with_else(n):
    i = 0
    while i < n:
        if i == 4:
            result = 100
            break
        i += 1
    else:
        result = -1
    return result, i


@case(*SIGNS)
def early_returns(x):
    if x > 1:
        return x * 2
    if x < -1:
        y = x * x
        if y > 5:
            return y
        return -y
    return x + 10


@case(*COUNTS)
def return_from_a_nested_loop(n):
    for i in range(5):
        for j in range(5):
            if i * j >= n:
                return i * 10 + j
    return -1


@case(*COUNTS)
def return_from_a_while(n):
    i = 0
    while True:
        i += 1
        if i * i > n:
            return i
        if i > 50:
            return -i


@case(*SIGNS)
def return_in_both_branches_of_a_loop(x):
    for i in range(4):
        x = x + 1
        if x > 3:
            return x, i
        elif x < -1:
            x = x * 0.5
        else:
            x = x + 0.25
    return x, -1


@case(*COUNTS)
def pass_and_nothing(n):
    if n > 3:
        pass
    else:
        n = n * 2
    for _ in range(3):
        pass
    return n


@case(*SIGNS)
def a_return_without_value(x):
    out = []

    def add(v):
        if v > 0:
            return
        return

    add(x)
    out.append(x)
    return out[0]


# -- expressions


@case(*SIGNS)
def chained_comparisons(x):
    if -1 < x < 1:
        return 0
    if 1 <= x <= 2 or -4 < x <= -3:
        return 1
    return 2


@case(*SIGNS)
def mixed_logic(x):
    a = x > 0 and x < 5 or x == -3
    b = not (x > 0) and (x > -5 or x == 0)
    return a, b, a and not b


@case(*SIGNS)
def values_of_logic(x):
    return (x and 5.0) + (x or 7.0)


@case(*SIGNS)
def nested_ternaries(x):
    return 1.0 if x > 1 else 2.0 if x > -1 else x * 2 if x > -2 else 4.0


@case(*SIGNS)
def ternaries_as_arguments(x):
    return jnp.maximum(x if x > 0 else -x, 1.0 if x == 0 else 0.5)


@case(*SIGNS)
def a_walrus_in_a_condition(x):
    if (y := x * 2) > 1:
        return y + 1
    return y - 1


@case(*COUNTS)
def a_walrus_in_a_while(n):
    total = 0
    while (rest := n - total) > 0:
        total += 1 + rest // 3
    return total, rest


@case(*SIGNS, (-9.0,))
def a_condition_that_is_asked_twice(x):
    if x > 0:
        y = x * 2
    z = x + 1
    if x > 0:
        z = z + y
    return z


@case(*SIGNS, (-9.0,))
def a_walrus_in_logic(x):
    if x > -5 and (y := x + 1) > 0:
        return y
    return x


@case(*COUNTS)
def a_walrus_in_logic_of_a_while(n):
    total = 0
    while n > 0 and (rest := n % 4) < 3:
        total += rest
        n -= 1
    return total, n


@case(*SIGNS, (9.0,))
def a_walrus_in_or(x):
    if x < -2 or (y := x * 3) > 5:
        return 1.0
    return y


@case(*VECTORS)
def any_and_all(values):
    if any(v > 4 for v in values):
        a = 1
    else:
        a = 0
    b = 2 if all(v > 0 for v in values) else 3
    return a, b


@case(*VECTORS)
def a_sum_with_a_condition(values):
    return sum(v for v in values if v > 0)


@case(*VECTORS)
def a_count_with_a_condition(values):
    return sum(1 for v in values if v > 0)


@case(*VECTORS)
def any_with_a_condition(values):
    return any(v > 4 for v in values if v > 0), all(v < 4 for v in values if v > 0)


@case(*VECTORS)
def max_with_a_condition(values):
    return max((v for v in values if v > -10), default=-1.0), min(
        (v for v in values if v > 1.5), default=99.0
    )


@case(*VECTORS)
def a_sum_with_two_conditions(values):
    return sum(v * w for v in values if v > 0 for w in (1.0, 2.0) if v * w < 9)


@case(*VECTORS)
def a_sum_of_a_list_with_a_condition(values):
    return sum([v * 2 for v in values if v > 0])


@case(*VECTORS)
def next_with_a_condition(values):
    return next((v for v in values if v > 2), -1.0)


@case(*VECTORS)
def next_index_with_a_condition(values):
    return next((i for i, v in enumerate(values) if v > 2), -1)


@case(*VECTORS)
def ternaries_in_comprehensions(values):
    return [v * 2 if v > 0 else -v for v in values]


@case(*SIGNS)
def min_max_and_abs(x):
    return min(x, 1.0), max(x, 0.0, -1.0), abs(x), min(max(x, -1), 1)


@case((5,), (-5,))
def in_a_container(n):
    return n in (1, 5, 9), n not in [5, 6], n in range(10)


# -- helper functions


def _clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x


def _steps_to_one(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@case(*SIGNS)
def helpers(x):
    return _clamp(x, -1.0, 1.0) + _clamp(x * 2, low=0.0, high=3.0)


@case((6,), (1,), (27,))
def a_helper_with_a_loop(n):
    best = 0
    for k in range(3):
        s = _steps_to_one(n + k)
        if s > best:
            best = s
    return best


@case(*SIGNS)
def closures(x):
    limit = x * 2

    def inside(y):
        if y > limit:
            return limit
        return y

    return inside(x) + inside(x * 3)


@case(*SIGNS)
def lambdas_and_partials(x):
    choose = lambda a, b: a if a > b else b  # noqa: E731
    fixed = functools.partial(choose, 1.0)
    return choose(x, 0.5) + fixed(x)


@case(*VECTORS)
def mapped_helpers(values):
    return px.vmap(lambda v: _clamp(v, -1.0, 3.0))(values)


@case(*VECTORS)
def helpers_in_a_scan(values):
    def body(carry, v):
        if v > carry:
            carry = v
        return carry, carry

    return lax.scan(body, 0.0, values)


@case(*SIGNS)
def a_gradient_inside(x):
    def loss(v):
        if v > 0:
            return v**2
        return -v

    return px.grad(loss)(x)


@case(*SIGNS)
def a_decorated_helper(x):
    @px.jit
    def inner(v):
        return v * 2 if v > 0 else v - 1

    return inner(x)


@case((3,), (0,), (5,))
def a_nonlocal_counter(n):
    count = 0

    def bump():
        nonlocal count
        if n > 2:
            count += 1

    bump()
    bump()
    return count


# -- match


@case((0,), (1,), (2,), (7,))
def match_literals(n):
    match n:
        case 0:
            return 10.0
        case 1 | 2:
            return 20.0
        case _:
            return 30.0


@case((0,), (1,), (5,), (-3,))
def match_with_guards(n):
    match n:
        case 0:
            label = 0
        case k if k < 0:
            label = k * 2
        case k if k > 3:
            label = k + 100
        case other:
            label = other
    return label


@case((1, 2.0), (0, 3.0), (2, -1.0))
def match_without_a_default(kind, x):
    y = x
    match kind:
        case 0:
            y = x * 2
        case 1:
            y = x + 5
    return y


@case((0, 0), (1, 0), (0, 4), (3, 3))
def match_pairs(a, b):
    match (a, b):
        case (0, 0):
            return 0
        case (0, y):
            return y
        case (x, 0):
            return -x
        case (x, y):
            return x * y


@case((1,), (2,), (3,))
def match_in_a_loop(kind):
    total = 0
    for i in range(4):
        match (kind + i) % 3:
            case 0:
                continue
            case 1:
                total += 1
            case _:
                total += 10
                if total > 25:
                    break
    return total


@case((1.0,), (-1.0,))
def match_on_known_structure(x):
    config = {"mode": "double", "bias": 1.0}
    match config:
        case {"mode": "double", "bias": bias}:
            y = x * 2 + bias
        case {"mode": "half"}:
            y = x / 2
    if y > 0:
        return y
    return -y


# -- try


@case(*SIGNS)
def return_inside_of_try(x):
    try:
        if x > 0:
            return x * 2
        return x - 1
    except ZeroDivisionError:
        return x


@case(*SIGNS)
def return_inside_of_try_finally(x):
    seen = []
    try:
        if x > 0:
            return x * 2
    finally:
        seen.append(1)
    return x - 1


@case(*COUNTS)
def break_inside_of_try(n):
    total = 0
    for i in range(10):
        try:
            if i > n:
                break
            if i == 2:
                continue
            total += i
        except ValueError:
            total = -1
    return total


@case(*SIGNS)
def known_errors_are_caught(x):
    try:
        scale = {"a": 2.0}["b"]
    except KeyError:
        scale = 3.0
    if x > 0:
        return x * scale
    return x


@case(*SIGNS)
def return_inside_of_with(x):
    with px.named_scope("scope"):
        if x > 0:
            return x * 2
        y = x - 1
    return y


# -- checks


@case((2.0,), (1.0,))
def asserts(x):
    assert x > 0, f"x = {x}"
    assert 0 < x < 10
    return jnp.sqrt(x)


@case((2.0,), (1.0,))
def raises(x):
    if x < 0:
        raise ValueError("negative")
    elif x > 100:
        raise ValueError("too large")
    return jnp.sqrt(x)


# -- numerics


@case((1.0, 0.1), (2.0, 0.5))
def adaptive_euler(y, h):
    t = 0.0
    accepted = 0
    while t < 1.0:
        full = y - h * y
        half = y - 0.5 * h * y
        half = half - 0.5 * h * half
        error = abs(full - half)
        if error < 1e-2:
            t, y = t + h, half
            accepted += 1
            if error < 2.5e-3:
                h = h * 1.5
        else:
            h = h * 0.5
        h = min(h, 1.0)
    return y, accepted


@case(([0.3, 0.6],), ([-0.5, 0.5],), ([2.0, 2.0],))
def mandelbrot_pair(c):
    counts = []
    for k in range(2):
        z = 0.0
        n = 0
        while n < 20:
            z = z * z + c[k]
            if abs(z) > 2:
                break
            n += 1
        counts.append(n)
    return counts


@case(([4.0, 1.0],), ([0.5, 2.0],))
def gradient_descent_with_line_search(x):
    def loss(v):
        return jnp.sum(v**2) + jnp.sum(v**4)

    for _ in range(3):
        g = px.grad(loss)(x)
        step = 1.0
        while loss(x - step * g) > loss(x) - 0.3 * step * jnp.sum(g * g):
            step = step * 0.5
        x = x - step * g
    return x


@case(([3.0, 1.0],), ([0.1, 0.2],))
def power_iteration(v):
    a = jnp.array([[2.0, 1.0], [1.0, 3.0]])
    old = 0.0
    for _ in range(60):
        v = a @ v
        size = jnp.sqrt(jnp.sum(v * v))
        v = v / size
        if abs(size - old) < 1e-5:
            break
        old = size
    return size


@case((0.2,), (0.9,), (0.5,))
def a_state_machine(x):
    state = 0
    ticks = 0
    while state != 3 and ticks < 30:
        ticks += 1
        if state == 0:
            state = 1 if x > 0.3 else 2
        elif state == 1:
            x = x * 0.8
            if x < 0.4:
                state = 3
        else:
            x = x + 0.1
            state = 0
    return state, ticks, x


@case(([1, 0, 1, 1],), ([0, 0, 0, 0],), ([1, 1, 1, 1],))
def longest_run(bits):
    best = run = 0
    for b in bits:
        if b:
            run += 1
            best = max(best, run)
        else:
            run = 0
    return best


@case(([1.0, 2.0, 3.0, 4.0], 2), ([1.0, 2.0, 3.0, 4.0], 0), ([1.0, 2.0, 3.0, 4.0], 4))
def sum_of_the_first(values, n):
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@case((7,), (0,), (3,))
def reversed_and_stepped_ranges(n):
    total = 0
    for i in reversed(range(n)):
        total = total * 2 + i
    for i in range(n, 0, -2):
        total += i
    for i in range(1, n + 1, 3):
        total -= i
    return total


@case((2.0, 3), (0.5, 6))
def augmented_assignments(x, n):
    y = x
    for _ in range(n):
        y += 1
        y *= 0.9
        y -= x
        if y < 0:
            y **= 2
        y /= 1.1
    return y


@case((4,), (0,))
def delete_and_annotate(n):
    total: int = 0
    scale: float
    scale = 2.0
    for i in range(n):
        square = i * i
        total += square
        del square
    if total > 3:
        extra: int = 5
        total = total + extra
    return total * scale


@case((3.0,), (-1.0,))
def tuples_of_different_dtypes(x):
    if x > 0:
        a, b = 1, 2.5
    else:
        a, b = 0.5, 3
    return a, b


@case((1, 3.0), (0, 3.0))
def a_boolean_argument(flag, x):
    flag = flag == 1
    y = x
    if flag:
        y = y * 2
    if not flag:
        y = y + 1
    if flag and y > 2 or not flag and y > 3:
        y = -y
    return y


@case(*SIGNS)
def several_targets(x):
    a = b = x
    if x > 0:
        a, *rest = (x, 1.0, 2.0)
        b = rest[0] + rest[1]
    return a + b


@case(*SIGNS)
def an_if_in_an_else_in_a_loop(x):
    for k in range(3):
        if x > k:
            x = x - 1
        else:
            if x < -k:
                x = x + 2
            else:
                x = x * 0.5
                if k == 1:
                    continue
                x = x + 0.125
    return x
