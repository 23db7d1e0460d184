"""Random programs under transformations nested to depth 4, held against jax in value, dtype, weak type and shape.

A program is a list of lines of Python and a list of transformations around them, written for a module `m` that is
either library. What jax refuses is no program. Values may differ by what the rounding of the arguments makes of them:
jax computes each program twice, the second time with arguments that differ by one unit in the last place of the
narrowest dtype that the program uses.
"""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import purax
from tests.fuzz import _progress
from tests.fuzz.jax_interpreter import evaluate

# Functions with rules of their own, and what the transformations need.
PRELUDE = '''
import numpy as np

def library(m):
    """The functions that programs use, for either library."""
    jnp, lax = m.numpy, m.lax

    @m.custom_jvp
    def forward(a, b):
        return jnp.sin(a) * b
    forward.defjvp(lambda p, t: (forward(*p), jnp.cos(p[0]) * p[1] * t[0] + jnp.sin(p[0]) * t[1]))

    @m.custom_vjp
    def backward(a, b):
        return jnp.sin(a) * b
    backward.defvjp(
        lambda a, b: (backward(a, b), (a, b)), lambda r, g: (jnp.cos(r[0]) * r[1] * g, jnp.sin(r[0]) * g)
    )

    @m.custom_gradient
    def graded(a):
        return a * a, lambda g: (2.0 * a * g,)

    @functools.partial(m.custom_jvp, nondiff_argnums=(0,))
    def applied(f, a):
        return f(a)
    applied.defjvp(lambda f, p, t: (f(p[0]), 2.0 * t[0]))

    @m.custom_jvp
    def symbolic(a, b):
        return a * b
    def symbolic_rule(p, t):
        (a, b), (da, db) = p, t
        is_zero = lambda d: type(d) is m.custom_derivatives.SymbolicZero
        parts = ([] if is_zero(da) else [da * b]) + ([] if is_zero(db) else [a * db])
        return a * b, sum(parts[1:], parts[0]) if parts else jnp.zeros_like(a * b)
    symbolic.defjvp(symbolic_rule, symbolic_zeros=True)

    @m.custom_batching.custom_vmap
    def batched(a):
        return a * 3.0
    batched.def_vmap(lambda size, axes, a: (a * 3.0, axes[0]))

    def total(f):
        def summed(*args):
            leaves = [v for v in m.tree_util.tree_leaves(f(*args)) if jnp.issubdtype(jnp.result_type(v), jnp.inexact)]
            return sum([jnp.sum(jnp.real(v)).astype(jnp.float32) for v in leaves[1:]],
                       jnp.sum(jnp.real(leaves[0])).astype(jnp.float32))
        return summed

    return locals()
'''.replace("import numpy as np\n", "import functools\nimport numpy as np\n")

# Lines of a program: {a}, {b} and {c} are values that are known by then.
OPERATIONS = (
    *(f"jnp.{name}({{a}})" for name in ("sin", "cos", "tanh", "square", "negative", "abs", "sign", "floor")),
    *(
        f"jnp.{name}({{a}})"
        for name in ("sum", "max", "min", "mean", "ravel", "sort", "cumsum", "argmax", "any")
    ),
    *(
        f"jnp.{name}({{a}}, {{b}})"
        for name in ("add", "subtract", "multiply", "maximum", "minimum", "arctan2")
    ),
    *("{a} + 2.0", "{a} * 3", "2 - {a}", "{a} * np.float32(0.5)", "{a} + np.arange(3)", "{a} > {b}", "-{a}"),
    *("{a} * {b}", "{a} + {b}", "{a} / (2.5 + {b} * {b})", "{a} ** 2", "{a} ** 3.0", "{a} @ {a}", "{a} % 2"),
    *("jnp.where({a} > {b}, {c}, 0.5)", "jnp.where({a} > 0, jnp.sqrt(jnp.abs({b}) + 1.0), {c})"),
    *("jnp.logaddexp({a}, 0.0)", "jnp.logaddexp({a}, {b})", "m.nn.softplus({a})", "m.nn.relu({a})"),
    *("m.nn.softmax({a})", "m.nn.gelu({a})", "m.nn.silu({a})", "m.nn.logsumexp({a})", "jnp.hypot({a}, 1.0)"),
    *("forward({a}, {b})", "forward({a}, 2.0)", "backward({a}, 2.0)", "backward({a}, {b} * 1.0)"),
    *("graded({a})", "applied(jnp.tanh, {a})", "symbolic({a}, 2.0)", "symbolic({a}, {b})", "batched({a})"),
    *(
        "{a}.astype(jnp.float16)",
        "{a}.astype(jnp.bfloat16)",
        "{a}.astype(jnp.int32)",
        "{a}.astype(jnp.float32)",
    ),
    *("{a}.astype(bool)", "{a}.astype(jnp.int8)", "{a}.astype(jnp.uint8)", "{a}.astype(jnp.complex64)"),
    *("jnp.ones(3) * {a}", "jnp.zeros_like({a})", "jnp.full((3,), 2.0)", "jnp.arange(3)", "jnp.asarray(1.5)"),
    *("jnp.reshape({a}, -1)", "jnp.stack([{a}, {a}])", "jnp.concatenate([jnp.ravel({a}), jnp.ravel({b})])"),
    *("jnp.broadcast_to({a}, (2, 3))", "jnp.expand_dims({a}, 0)", "{a}.T", "{a}[0]", "{a}[..., ::-1]"),
    *("jnp.ravel({a}).at[0].set(2.0)", "jnp.ravel({a}).at[1].add(jnp.sum({b}))", "jnp.take({a}, 1)"),
    *("jnp.ravel({a})[jnp.argmax(jnp.ravel({b})) % 2]", "jnp.clip({a}, -0.5, 0.5)", "jnp.round({a})"),
    *("lax.stop_gradient({a})", "lax.reduce_precision({a}, 8, 10)", "lax.integer_pow({a}, 3)"),
    *("m.random.normal(m.random.key(3), (3,)) * {a}", "m.random.uniform(m.random.PRNGKey(1), (2, 3))"),
    *("m.random.randint(m.random.key(2), (3,), 0, 9)", "m.random.split(m.random.PRNGKey(4), 3)[0]"),
    *("lax.scan(lambda c, t: (c * 0.5 + t, c), 0.0, jnp.ravel({a}))[0]",),
    *("lax.scan(lambda c, t: (c + t, c * t), 0, jnp.ravel({a}))[1]",),
    *("lax.scan(lambda c, t: (forward(c, t), c), 0.25, jnp.ravel({a}), reverse=True)[1]",),
    *("lax.scan(lambda c, t: (c * 0.5 + t, c), jnp.sum({b}), jnp.ravel({a}), unroll=2)[1]",),
    *(
        "lax.fori_loop(0, 3, lambda i, c: c * 0.5 + i, {a})",
        "lax.fori_loop(0, 2, lambda i, c: forward(c, 2.0), {a})",
    ),
    *("lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, backward(s[1], 0.5)), (0, {a}))[1]",),
    *("lax.cond(jnp.sum({a}) > 0.5, lambda t: t * 2, lambda t: t + 1, {b})",),
    *("lax.cond(jnp.sum({a}) > 0.5, lambda t: forward(t, 2.0), lambda t: backward(t, 3.0), {b})",),
    *("lax.cond(jnp.sum({a}) > 0.5, lambda: np.float32(1.0), lambda: 2.0)",),
    *("lax.switch(jnp.argmax(jnp.ravel({a})), [lambda t: t, lambda t: t * 2.0, lambda t: jnp.sin(t)], {b})",),
    *("lax.map(lambda t: jnp.sin(t) * 2.0, jnp.ravel({a}))", "lax.associative_scan(jnp.add, jnp.ravel({a}))"),
    *("m.jit(lambda t: forward(t, 0.5) + 1.0)({a})", "m.checkpoint(lambda t: jnp.sin(t) * {b})({a})"),
    *("m.vmap(lambda t: jnp.logaddexp(t, 0.0))(jnp.ravel({a}))", "m.vmap(jnp.sin)({a})"),
    *("m.grad(lambda t: jnp.sum(jnp.sin(t) * {b}))({a})", "m.jvp(jnp.tanh, ({a},), ({a},))[1]"),
    *("m.jit(m.vmap(m.jit(lambda t: backward(t, 2.0))))(jnp.ravel({a}))",),
    *("lax.psum({a}, 'i')", "lax.pmean({a}, 'i')", "lax.axis_index('i') + {a}", "lax.all_gather({a}, 'i')"),
    *("lax.pmax({a}, 'i')", "lax.ppermute({a}, 'i', [(0, 1), (1, 0)])", "lax.psum(2, 'i') * {a}"),
)
DERIVATIVES = {
    "grad": "m.grad(total({f}))",
    "value_and_grad": "m.value_and_grad(total({f}))",
    "jvp": "(lambda x, y: m.jvp(lambda x: {f}(x, y), (x,), (x * 0.5,)))",
    "linearize": "(lambda x, y: m.linearize(lambda x: {f}(x, y), x)[1](x * 0.5))",
    "vjp": "(lambda x, y: m.vjp(lambda x: total({f})(x, y), x)[1](jnp.float32(0.5)))",
    "jacfwd": "m.jacfwd({f})",
    "jacrev": "m.jacrev(total({f}))",
    "hessian": "m.hessian(total({f}))",
    "transposed": "(lambda x, y: m.linear_transpose(m.linearize(lambda x: total({f})(x, y), x)[1], x)(jnp.float32(1)))",
}
OTHERS = {
    "jit": "m.jit({f})",
    "vmap": "m.vmap({f})",
    "named": "m.vmap({f}, axis_name='i')",
    "partly": "m.vmap({f}, in_axes=(0, None))",
    "last": "m.vmap({f}, out_axes=-1)",
    "checkpoint": "m.checkpoint({f})",
    "scan": "(lambda x, y: lax.scan(lambda c, t: (c, {f}(x * t, y)), 0, jnp.arange(2.0))[1])",
    "map": "(lambda x, y: lax.map(lambda t: {f}(x, y), jnp.arange(2)))",
    "cond": "(lambda x, y: lax.cond(jnp.sum(y) > 1, {f}, lambda x, y: {f}(x * 0.5, y), x, y))",
    "fori": "(lambda x, y: lax.fori_loop(0, 2, lambda i, s: {f}(x, y), {f}(x, y)))",
}
TRANSFORMATIONS = DERIVATIVES | OTHERS
# What purax refuses on purpose: an index out of bounds, and a forward derivative of a custom_vjp function, which jax,
# compiled, forgets if nobody uses it.
REFUSED = ("out of bounds", "reverse differentiation only")
REFUSED_BY_JAX = "refused by jax"
QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
COMPILED_EVERY = 32  # of how many programs jax compiles one as a whole
_BATCHED = ("vmap", "named", "last", "partly")
_NARROW = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "reduce_precision": 2.0**-10}


class Program(NamedTuple):
    """A program.

    Attributes:
        lines: expressions; the one number i becomes the value `v{i}`.
        results: which values it returns.
        transformations: names of `TRANSFORMATIONS`, the innermost first.
        shapes: of the two arguments of the innermost function.
        dtypes: of the two arguments.
        seed: of their values.
    """

    lines: tuple[str, ...]
    results: tuple[int, ...]
    transformations: tuple[str, ...]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[str, str]
    seed: int

    def source(self) -> str:
        """The program as Python: `run(m, *arguments)`."""
        body = "".join(f"        v{i} = {line}\n" for i, line in enumerate(self.lines))
        text = "f"
        for name in self.transformations:
            text = TRANSFORMATIONS[name].replace("{f}", text)
        used = sorted(name for name in _LIBRARY if any(name in part for part in (body, text)))
        names = "".join(f"    {name} = functions[{name!r}]\n" for name in used)
        results = ", ".join(f"v{i}" for i in self.results)
        return (
            f"def run(m, *arguments):\n    functions = library(m)\n    jnp, lax = m.numpy, m.lax\n{names}"
            f"    def f(x, y):\n{body}        return ({results},)\n    return {text}(*arguments)\n"
        )

    def arguments(self, change: float = 0.0) -> list[np.ndarray]:
        """The arguments, each element of the floating point ones changed by a relative amount."""
        random = np.random.default_rng(self.seed)
        leading: tuple[tuple[int, ...], ...] = ((), ())
        for name in self.transformations:
            if name in _BATCHED:
                leading = ((2, *leading[0]), leading[1] if name == "partly" else (2, *leading[1]))
        arrays = []
        for shape, front, dtype in zip(self.shapes, leading, self.dtypes, strict=True):
            x = random.uniform(0.25, 1.75, (*front, *shape)) * random.choice([1, 1, -1], (*front, *shape))
            signs = random.choice([1, -1], x.shape)
            arrays.append((x * (1 + change * signs) if dtype[0] == "f" else x * 3).astype(dtype))
        return arrays

    def script(self, message: str) -> str:
        """A program that shows the difference."""
        arrays = ", ".join(f"np.array({x.tolist()}, {str(x.dtype)!r})" for x in self.arguments())
        return (
            f"# {message}\nimport numpy as np\nimport jax, purax\n"
            f"from tests.fuzz.random_programs import library\n{self.source()}"
            f"arguments = [{arrays}]\nprint(run(purax, *map(purax.numpy.asarray, arguments)))\n"
            "print(run(jax, *map(jax.numpy.asarray, arguments)))\n"
        )


_LIBRARY = ("forward", "backward", "graded", "applied", "symbolic", "batched", "total")
_scope: dict[str, Any] = {}
exec(PRELUDE, _scope)
library = functools.lru_cache(
    _scope["library"]
)  # what the two libraries trace once, they need not trace again


def draw(random: np.random.Generator) -> Program:
    """A random program."""
    lines: list[str] = []
    for _ in range(int(random.integers(1, 6))):
        known = ["x", "y", *(f"v{i}" for i in range(len(lines)))]
        weights = np.arange(1, len(known) + 1) / sum(range(1, len(known) + 1))  # rather what is new
        pick = lambda: str(random.choice(known, p=weights))  # noqa: B023, E731
        line = OPERATIONS[int(random.integers(len(OPERATIONS)))]
        for place in ("{a}", "{b}", "{c}"):
            line = line.replace(place, pick())
        lines.append(line)
    results = sorted({len(lines) - 1, int(random.integers(len(lines)))})
    names = [str(name) for name in random.choice(list(TRANSFORMATIONS), int(random.integers(0, 5)))]
    if any("'i'" in line for line in lines) and "named" not in names:
        names.insert(int(random.integers(len(names) + 1)), "named")
    shapes = ((), (3,), (2, 3), (3,))
    first, second = (shapes[int(random.integers(4))] for _ in range(2))
    dtypes = (
        str(random.choice(["float32"] * 4 + ["float16"])),
        str(random.choice(["float32"] * 3 + ["int32"])),
    )
    return Program(
        tuple(lines), tuple(results), tuple(names), (first, second), dtypes, int(random.integers(2**31))
    )


def difference(program: Program) -> str | None:
    """What purax does otherwise than jax, or None; also None where jax does not run the program."""

    scope: dict[str, Any] = {"library": library, "np": np}
    exec(program.source(), scope)
    run = scope["run"]
    text = program.source() + str(program.dtypes)
    unit = max([2.0**-23, *(size for name, size in _NARROW.items() if name in text)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted, nearby = _of_jax(program, run, [program.arguments(), program.arguments(unit)])
        except Exception:
            _progress.count(REFUSED_BY_JAX)
            return None
        try:
            with purax.threefry_partitionable(True):
                found = jax.tree.leaves(run(purax, *map(purax.numpy.asarray, program.arguments())))
        except Exception as error:
            if any(text in str(error) for text in REFUSED):
                _progress.count("refused on purpose")
                return None
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    if len(found) != len(wanted):
        return f"{len(found)} results for {len(wanted)}"
    if is_known(program, found, wanted):
        _progress.count("left out, where jax is wrong")
        return None
    compare_weak = True
    if [_is_weak(y) for y in found] != [_is_weak(z) for z in wanted]:
        # Where jax's own types depend on whether it traces the program as a whole, both of them are right.
        compare_weak = [_is_weak(y) for y in found] != _weak_types_of_eager_jax(program, run)
    for i, (y, z, near) in enumerate(zip(found, wanted, nearby, strict=True)):
        message = _difference_of(y, z, near, unit, compare_weak)
        if message is not None:
            return f"result {i}: {message}"
    return None


def is_known(program: Program, found: list[Any], wanted: list[Any]) -> bool:
    """Whether jax is known to compute a program wrongly."""
    names, source = program.transformations, "".join(program.lines)
    is_derivative = bool(set(names) & set(DERIVATIVES))
    has_collective = any("'i'" in line for line in program.lines)
    # jax's derivative of a branch with a collective, chosen by an index along the named axis, is not summed over it.
    if has_collective and is_derivative and "cond" in names and "cond" in names[: names.index("named")]:
        return True
    # jax subtracts the maximum in unsigned integers, of which random keys are made, too.
    if ("uint8" in source or "random.split" in source) and "m.nn.softmax(" in source:
        return True
    # What a backward rule returns has any dtype in jax; in purax a cotangent has that of the argument.
    is_of_rule = is_derivative and "backward(" in source
    return is_of_rule and any(y.dtype != z.dtype for y, z in zip(found, wanted, strict=True))


def _is_weak(x: Any) -> bool:
    return bool(getattr(x, "weak_type", False)) and x.dtype != bool  # nothing depends on that of booleans


def _weak_types_of_eager_jax(program: Program, run: Any) -> list[bool]:
    return [_is_weak(x) for x in jax.tree.leaves(run(jax, *map(jax.numpy.asarray, program.arguments())))]


def _of_jax(program: Program, run: Any, arguments: list[list[np.ndarray]]) -> list[list[Any]]:
    """jax's results for each of some arguments: mostly interpreted, since to compile takes most of the time."""
    function = lambda *xs: jax.tree.leaves(run(jax, *xs))  # noqa: E731
    if program.seed % COMPILED_EVERY:
        traced = jax.make_jaxpr(function)(*arguments[0])
        types = [Type(aval.dtype, aval.shape, aval.weak_type) for aval in traced.out_avals]
        try:
            return [
                [Result(*kind, value) for kind, value in zip(types, evaluate(traced, given), strict=True)]
                for given in arguments
            ]
        except Exception:  # what cannot be interpreted is compiled, which raises where jax does
            pass
    compiled = jax.jit(function, compiler_options=QUICKLY)
    return [compiled(*given) for given in arguments]


class Type(NamedTuple):
    """The type of an array."""

    dtype: Any
    shape: tuple[int, ...]
    weak_type: bool


class Result(NamedTuple):
    """An array, and its type, which a value of NumPy does not have."""

    dtype: Any
    shape: tuple[int, ...]
    weak_type: bool
    value: Any

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.value, dtype)


def _difference_of(y: Any, z: Any, near: Any, unit: float, compare_weak: bool) -> str | None:
    """How an array differs from jax's, given jax's at nearby arguments."""
    kinds = [(str(v.dtype), v.shape, _is_weak(v) and compare_weak) for v in (y, z)]
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} for {kinds[1]}"
    if "float0" in kinds[0][0] or "key" in kinds[0][0]:
        return None
    wide = np.complex128 if "complex" in kinds[0][0] else np.float64
    a, b, c = (np.asarray(v).astype(wide) for v in (y, z, near))
    if not a.size:
        return None
    steady = np.isfinite(b) & np.isfinite(c) if np.any(np.isnan(b) != np.isnan(c)) else np.ones(b.shape, bool)
    numbers = np.isfinite(b) & np.isfinite(c)
    scale = np.max(np.abs(b[numbers]), initial=0.0)
    moved = np.max(np.abs(b[numbers] - c[numbers]), initial=0.0)
    exact = not kinds[0][0].startswith(("float", "bfloat", "complex"))
    if exact and moved:  # a rounding decides
        return None
    allowed = 0.0 if exact else 64 * moved + 64 * unit * max(scale, 1.0)  # the arguments are about 1
    with np.errstate(all="ignore"):
        equal = (np.abs(a - b) <= allowed) | (a == b) | (np.isnan(a) & np.isnan(b)) | ~steady
    if equal.all():
        return None
    place = tuple(int(k) for k in np.argwhere(~equal)[0])
    return f"{a[place]} for {b[place]} at {place}"


def smaller(program: Program) -> Iterator[Program]:
    """Programs with a part less."""
    for i in range(len(program.transformations)):
        names = program.transformations[:i] + program.transformations[i + 1 :]
        yield program._replace(transformations=names)
    if len(program.results) > 1:
        for i in program.results:
            yield program._replace(results=(i,))
    for i in reversed(range(len(program.lines))):
        if i not in program.results and not any(f"v{i}" in line for line in program.lines):
            yield _without(program, i, "x")
    for i in reversed(range(len(program.lines))):
        for other in ("x", *(f"v{j}" for j in range(i))):
            if i not in program.results:
                yield _without(program, i, other)
    for i in program.results:
        if i:
            yield program._replace(results=(i - 1,), lines=program.lines[:i])
    for shape in ((), (3,)):
        for position in (0, 1):
            if len(shape) < len(program.shapes[position]):
                shapes = [*program.shapes]
                shapes[position] = shape
                yield program._replace(shapes=(shapes[0], shapes[1]))


def _without(program: Program, i: int, other: str) -> Program:
    """The program without a line, whose value is another one instead."""
    lines = []
    for j, line in enumerate(program.lines):
        if j == i:
            continue
        line = line.replace(f"v{i}", other)
        for k in range(i + 1, len(program.lines)):
            line = line.replace(f"v{k}", f"v{k - 1}")
        lines.append(line)
    return program._replace(lines=tuple(lines), results=tuple(k - (k > i) for k in program.results))


def shrunk(program: Program, message: str, seconds: float) -> tuple[Program, str]:
    """A smaller program that differs, too."""
    end = time.monotonic() + seconds
    found = True
    while found:
        found = False
        for candidate in smaller(program):
            if time.monotonic() > end:
                return program, message
            try:
                own = difference(candidate)
            except Exception:
                continue
            if own is not None:
                program, message, found = candidate, own, True
                break
    return program, message


def run(seed: int) -> Iterator[str | None]:
    """Tries random programs; yields those on which the libraries differ, as scripts."""
    random = np.random.default_rng(seed)
    for number in itertools.count(1):
        program = draw(random)
        _progress.trying(program.script("this program"))
        before = _progress.counts.total()
        message = difference(program)
        if message is None:
            if _progress.counts.total() == before:
                yield None
        else:
            small, message = shrunk(program, message, 20.0)
            yield small.script(message)
        if number % 4000 == 0:  # what is compiled takes memory
            purax.clear_caches()
            jax.clear_caches()
