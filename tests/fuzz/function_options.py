"""Every public function with random combinations of its options, eager and compiled, against jax.

Signatures say which parameters there are, the tables of arguments what each may be. Both libraries evaluate one
text; results must agree in structure, shape, dtype, weak type and value, and one raises where the other does. A
failure is the text as a program. `run(seed, seconds)` returns them.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import purax
from tests.fuzz import _progress, jax_interpreter
from tests.fuzz.function_arguments_table import NOT_DRAWN, PARAMETERS
from tests.fuzz.function_rules_table import (
    CALLS,
    DOMAINS,
    MEANINGS,
    MODULES,
    PARAMETER_RULES,
    SKIPPED,
    Domain,
)
from tests.fuzz.function_values import Draw, draw_shapes
from tests.fuzz.jax_interpreter import NotInterpreted
from tests.fuzz.known_differences import is_known

STATISTICS = (
    "bernoulli beta betabinom binom cauchy chi2 expon gamma gennorm geom gumbel_l gumbel_r laplace logistic nbinom "
    "norm pareto poisson t truncnorm uniform vonmises wrapcauchy"
).split()
QUICKLY = {"xla_backend_optimization_level": 0}
TOLERANCES = {
    "float8_e4m3fn": 0.2, "float8_e5m2": 0.4, "float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5, "complex64": 2e-5,
}  # fmt: skip


class Function(NamedTuple):
    """A public function: its module, its name, and the parameters that are drawn."""

    module: str
    name: str
    parameters: tuple[inspect.Parameter, ...]
    domain: Domain

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


class Case(NamedTuple):
    """A call: the arrays, the body that names them, and how it is evaluated: "run", "jit", "traced" or "eval_shape"."""

    path: str
    arguments: tuple[str, ...]
    body: str
    mode: str

    def program(self) -> str:
        names = ", ".join(f"a{i}" for i in range(len(self.arguments)))
        arguments = ", ".join(self.arguments)
        call = {"run": f"f({arguments})", "jit": f"m.jit(f)({arguments})"}.get(
            self.mode, f"m.eval_shape(f, {arguments})"
        )
        return (
            "import numpy as np; from numpy import inf, nan; import purax as m  # or: import jax as m\n"
            f"jnp = m.numpy\nf = lambda {names}: {self.body}\nprint(repr({call}))"
        )


# To compile takes most of the time: mostly, jax's program is traced and interpreted, purax's types are inferred and its
# values computed eagerly.
MODES = ("run", "jit", *["traced"] * 30)

# --- drawing


def functions() -> Iterator[Function]:
    """Those that both libraries have, without the ones that are skipped for a reason."""
    for module in [*MODULES, *(f"scipy.stats.{name}" for name in STATISTICS)]:
        ours, theirs = (importlib.import_module(f"{library}.{module}") for library in ("purax", "jax"))
        for name in sorted(set(dir(ours)) & set(dir(theirs))):
            function = getattr(ours, name)
            if name.startswith("_") or not callable(function) or isinstance(function, type):
                continue
            if inspect.ismodule(function) or name in SKIPPED.get(module, ()):
                continue
            try:
                parameters = tuple(inspect.signature(function).parameters.values())
            except (TypeError, ValueError):
                continue  # a type, or a ufunc without a signature
            domain = (
                DOMAINS.get(f"{module}.{name}")
                or DOMAINS.get(name)
                or MODULES.get(module)
                or STATISTICS_DOMAIN
            )
            yield Function(module, name, parameters, domain)


STATISTICS_DOMAIN = Domain("hi", (0, 1, 2), 0.1, 4.0)


def rule_of(function: Function, parameter: str) -> Callable[[Draw], Any] | None:
    for key in (f"{function.path}.{parameter}", f"{function.name}.{parameter}"):
        if key in PARAMETER_RULES:
            return PARAMETER_RULES[key]
    return PARAMETERS.get(parameter)


def undrawn(function: Function) -> list[str]:
    """Optional parameters that no table knows."""
    if function.path in CALLS:
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        p.name
        for p in function.parameters
        if p.default is not p.empty
        and p.kind not in kinds
        and not rule_of(function, p.name)
        and p.name not in NOT_DRAWN
    ]


def say(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def draw_case(
    function: Function, random: np.random.Generator, shared: dict[int, list[tuple[int, ...]]] | None = None
) -> Case:
    domain = function.domain
    draw = Draw(random, domain.kinds, domain.ranks, shared)
    draw.low, draw.high, draw.strict = domain.low, domain.high, domain.strict
    draw.drawn["function"] = function.name
    if function.path in CALLS:
        positional, options = CALLS[function.path](draw)
    else:
        positional, options = draw_arguments(function, draw)
    texts = positional + [f"{name}={say(value)}" for name, value in options.items()]
    module = "jnp" + function.module[5:] if function.module.startswith("numpy") else f"m.{function.module}"
    body = f"{module}.{function.name}({', '.join(texts)})"
    if function.module == "nn.initializers" and function.name not in ("ones", "zeros"):
        body += f"(m.random.key({draw.integer(0, 9)}), {draw.one_of(((3, 4), (2, 3, 4), (5, 5)))})"
    body = MEANINGS.get(function.path, "{}").replace("{}", body)
    return Case(function.path, tuple(draw.arguments), body, draw.one_of(MODES))


def draw_arguments(function: Function, draw: Draw) -> tuple[list[str], dict[str, Any]]:
    positional: list[str] = []
    options: dict[str, Any] = {}
    is_behind_a_gap = False  # what follows an omitted positional parameter is given by keyword
    eagerness = draw.one_of((0.15, 0.4, 0.6))  # how many options are given
    for parameter in function.parameters:
        rule = rule_of(function, parameter.name)
        required = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            if rule is not None and not is_behind_a_gap:
                values = [rule(draw) for _ in range(draw.integer(1, 3))]
                positional += [say(value) for value in values if value is not None]
            continue
        if not required and (rule is None or not draw.chance(eagerness)):
            is_behind_a_gap = True
            if parameter.name == "inplace":
                options["inplace"] = False
            continue
        value = draw.array() if rule is None else rule(draw)
        draw.drawn[parameter.name] = value
        if parameter.kind is parameter.KEYWORD_ONLY or is_behind_a_gap:
            options[parameter.name] = value
        else:
            positional.append(say(value))
    return positional, options


# --- evaluating


class Outcome(NamedTuple):
    """The leaves of a result, or the exception."""

    leaves: tuple[Any, ...]
    kind: str
    error: Exception | None


def evaluate(case: Case, library: Any, mode: str) -> Outcome:
    names = {"m": library, "jnp": library.numpy, "np": np, "inf": math.inf, "nan": math.nan}
    with warnings.catch_warnings(), np.errstate(all="ignore"), library.threefry_partitionable(True):
        warnings.simplefilter("ignore")
        try:
            parameters = ", ".join(f"a{i}" for i in range(len(case.arguments)))
            function = eval(f"lambda {parameters}: {case.body}", names)
            values = [eval(text, names | {"jnp": of_arguments(library)}) for text in case.arguments]
            if mode == "traced" and library is jax:
                try:
                    return _interpreted(function, values)
                except NotInterpreted:
                    mode = "jit"
            if mode in ("eval_shape", "traced"):
                result = library.eval_shape(function, *values)
            else:
                called = library.jit(function, compiler_options=QUICKLY) if mode == "jit" else function
                result = called(*values)
            leaves = tuple(read(leaf, library) for leaf in library.tree.leaves(result))
        except (SyntaxError, NameError):  # of the tables, not of the libraries
            raise
        except Exception as error:
            return Outcome((), "", error)
    return Outcome(leaves, _kind_of(result), None)


class Namespace:
    """A module with other functions."""

    def __init__(self, module: Any, **functions: Any) -> None:
        self._module = module
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def of_arguments(library: Any) -> Any:
    """The library's `numpy` for arguments: jax compiles a program for each shape that `asarray` is given."""
    return Namespace(jax.numpy, asarray=jax.device_put) if library is jax else library.numpy


def _interpreted(function: Callable[..., Any], values: list[Any]) -> Outcome:
    """What jax computes, traced and interpreted."""
    traced, result = jax.make_jaxpr(function, return_shape=True)(*values)
    try:
        arrays = jax_interpreter.evaluate(traced, [jax.numpy.asarray(x) for x in jax.tree.leaves(values)])
    except Exception as error:  # it raises again where it is compiled
        raise NotInterpreted from error
    leaves = [
        Leaf(str(aval.dtype), aval.weak_type, np.asarray(x, aval.dtype))
        if isinstance(aval.dtype, np.dtype)
        else read(x, jax)
        for x, aval in zip(arrays, traced.out_avals, strict=True)
    ]
    return Outcome(tuple(leaves), _kind_of(result), None)


def _kind_of(result: Any) -> str:
    return type(result).__name__ if isinstance(result, list | tuple | dict) else ""


class Leaf(NamedTuple):
    """An array of a result; `is_abstract` if its value is not known."""

    dtype: str
    weak: bool
    value: np.ndarray
    is_abstract: bool = False


def read(leaf: Any, library: Any) -> Any:
    if isinstance(leaf, library.ShapeDtypeStruct):
        dtype = leaf.dtype
        if library.numpy.issubdtype(dtype, library.dtypes.extended):
            return Leaf("uint32", False, np.broadcast_to(np.uint32(0), (*leaf.shape, 2)), True)
        value = np.broadcast_to(np.zeros((), dtype), leaf.shape)
        return Leaf(str(dtype), bool(getattr(leaf, "weak_type", False)), value, True)
    if isinstance(leaf, library.Array):
        if library.numpy.issubdtype(leaf.dtype, library.dtypes.extended):
            return read(library.random.key_data(leaf), library)
        return Leaf(str(leaf.dtype), bool(getattr(leaf, "weak_type", False)), np.asarray(leaf))
    if isinstance(leaf, np.ndarray):
        return Leaf(f"numpy {leaf.dtype}", False, leaf)
    return leaf


def disagreement(ours: Outcome, theirs: Outcome) -> str:
    """How the results differ; nothing if they agree."""
    if theirs.error is not None or ours.error is not None:
        if theirs.error is not None and ours.error is not None:
            return ""
        if ours.error is not None:
            return f"purax raises {describe(ours.error)}"
        return f"jax raises {describe(theirs.error)}"
    if len(ours.leaves) != len(theirs.leaves) or ours.kind != theirs.kind.lstrip("_"):
        return f"structure: {ours.kind}{len(ours.leaves)} for {theirs.kind}{len(theirs.leaves)}"
    for x, y in zip(ours.leaves, theirs.leaves, strict=True):
        if isinstance(y, Leaf) and isinstance(
            x, bool | int | float | complex
        ):  # eager ones; compiled ones are arrays
            x = Leaf(y.dtype, y.weak, np.asarray(x, y.value.dtype))
        if isinstance(y, Leaf) and y.dtype.startswith("numpy "):
            continue
        if not isinstance(x, Leaf) or not isinstance(y, Leaf):
            if type(x).__name__ != type(y).__name__ or (x != y and str(x) != str(y)):
                return f"value: {x!r} for {y!r}"
            continue
        if x.dtype != y.dtype or x.value.shape != y.value.shape:
            return f"type: {x.dtype}{list(x.value.shape)} for {y.dtype}{list(y.value.shape)}"
        if x.weak != y.weak and x.dtype != "bool":  # nothing depends on that of booleans
            return f"weak type: {x.weak} for {y.weak}"
        if not (x.is_abstract or y.is_abstract or is_close(x.value, y.value, x.dtype)):
            return f"value: {brief(x.value)} for {brief(y.value)}"
    return ""


def describe(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {(lines or [''])[0][:160]}"


def brief(value: np.ndarray) -> str:
    return " ".join(str(value.ravel()[:12]).split()) + ("…" if value.size > 12 else "")


def is_close(x: np.ndarray, y: np.ndarray, dtype: str) -> bool:
    tolerance = TOLERANCES.get(dtype)
    if tolerance is None:
        return bool(np.array_equal(x, y))
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    with np.errstate(all="ignore"):
        x, y = x.astype(wide), y.astype(wide)
        if wide is np.complex128:
            x, y = (np.stack([z.real, z.imag]) for z in (x, y))
            # What infinite parts of products become is not defined.
            x, y = (np.where(np.isfinite(z).all(0), z, np.nan) for z in (x, y))
        finite = np.abs(y[np.isfinite(y)])
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        if scale > 1e20:
            scale = 1.0
        return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


# --- running


def check(case: Case) -> str:
    """What is wrong with purax's result, or nothing."""
    theirs = evaluate(case, jax, case.mode)
    ours = evaluate(case, purax, case.mode)
    difference = disagreement(ours, theirs)
    if not difference and case.mode != "run" and theirs.error is None:
        difference = disagreement(evaluate(case, purax, "run"), theirs)
        case = case._replace(mode="run")
    if not difference:
        if theirs.error is not None:
            _progress.count("refused by both")
        return ""
    if is_known(case.path, difference, case.program()):
        _progress.count("that differ on purpose")
        return ""
    return f"# {difference}\n{case.program()}"


class Tally:
    """What was tried, by function: draws and seconds."""

    def __init__(self) -> None:
        self.draws: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    def is_due(self, path: str, random: np.random.Generator) -> bool:
        """Whether to try a function in this round: one that takes long to compile is tried less often."""
        mean = self.seconds[path] / max(self.draws[path], 1)
        return bool(random.random() * mean < 0.05)


def run(seed: int, only: str = "") -> Iterator[str | None]:
    """Tries random calls; yields a program of a few lines for each that shows a difference.

    Args:
        seed: of the draws.
        only: the beginning of the paths of functions to try.
    """
    known = [function for function in functions() if function.path.startswith(only)]
    tally = Tally()
    random = np.random.default_rng(seed)
    family = seed if seed < 1000 else seed // 1000 % 100_000  # workers of one run share what jax compiles
    for turn in itertools.count():
        shared = draw_shapes(np.random.default_rng([family, turn // 4]))
        for position in random.permutation(len(known)):
            start = time.monotonic()
            function = known[position]
            case = draw_case(function, np.random.default_rng(int(random.integers(2**62))), shared)
            if not tally.is_due(function.path, random):
                continue
            _progress.trying(case.program())
            before = _progress.counts.total()
            failure = check(case)
            tally.draws[function.path] += 1
            tally.seconds[function.path] += time.monotonic() - start
            if failure or _progress.counts.total() == before:
                yield failure or None
            if sum(tally.draws.values()) % 4000 == 0:
                purax.clear_caches()
                jax.clear_caches()
