"""`explain`: what a function does, found by tracing and compiling it, and shown on one page."""

from __future__ import annotations

import functools
import hashlib
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from purax.api import cache_misses
from purax.api.jit import JitFunction, jit
from purax.api.stages import Compiled, Lowered, Traced, struct_of
from purax.core import source
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, jaxpr_as_fun
from purax.core.source import located
from purax.errors import ImpureFunctionWarning
from purax.execution import compiled_program
from purax.explorer import compiled, measuring, numerics
from purax.explorer.model import ModelMaker
from purax.explorer.page import Explanation
from purax.explorer.stablehlo import model_of_module
from purax.export import Exported
from purax.interpreters.arguments import require_function, to_array
from purax.purity.check_pure import check_pure

_SIZES = ("argument", "output", "alias", "temp", "generated_code")


def explain(
    fun: Callable | ClosedJaxpr | Exported | Traced | Lowered,
    *,
    measure: bool = False,
    numbers: bool = False,
    compile: bool = True,
) -> Callable[..., Explanation]:
    """A function that explains a call of `fun`: what it computes, at which line, and what that costs.

    The page shows the program as a graph that unfolds, beside the user's source; for each line shapes, operations,
    bytes, and memory; the kernels that it was compiled to; why it was traced again; and side effects. Nothing is run
    unless `measure` or `numbers` asks for it.

    Args:
        fun: a function, also one under `jit` with its options; or a program: a jaxpr, `jit(f).trace(...)`,
            `jit(f).lower(...)`, or an exported function, which need no arguments.
        measure: whether the program runs, under the profiler, for the time of each line.
        numbers: whether it runs equation by equation, for the ranges of values: NaN, infinities, underflow.
        compile: whether it is compiled, to see what became of it.

    Returns:
        A function of the arguments of `fun` (arrays, or `ShapeDtypeStruct`s) that returns an `Explanation`:
        a notebook shows it, `.show()` opens it in the browser, `.save(path)` writes the page, `.model` is its data.

    >>> import purax as px, purax.numpy as jnp
    >>> explanation = px.explain(lambda x: jnp.sum(jnp.sin(x)), compile=False)(jnp.ones(8))
    >>> explanation.model["name"], explanation.model["tables"]["operations"]
    ('<lambda>', ['sin', 'reduce_sum'])
    """
    options: Any = {"measure": measure, "numbers": numbers, "compile": compile}
    if isinstance(fun, Exported):
        return lambda: Explanation(model_of_module(fun.mlir_module(), fun.fun_name))
    if isinstance(fun, (Jaxpr, ClosedJaxpr)):
        closed = fun if isinstance(fun, ClosedJaxpr) else ClosedJaxpr(fun, _no_constants(fun))
        return lambda *args: _explain_program(closed, args, **options)
    if isinstance(fun, (Traced, Lowered, Compiled)):
        traced = fun if isinstance(fun, Traced) else fun._traced
        return lambda *args: _explain_program(traced.jaxpr, args, traced=traced, **options)
    require_function(fun, "explain")
    jitted = fun if isinstance(fun, JitFunction) else jit(fun)

    @functools.wraps(jitted._function)
    def explained(*args: Any, **kwargs: Any) -> Explanation:
        return _explain_call(jitted, args, kwargs, **options)

    return explained


def _no_constants(jaxpr: Jaxpr) -> list[Any]:
    if jaxpr.constvars:
        raise located(
            ValueError,
            f"explain: the jaxpr captures {len(jaxpr.constvars)} arrays, which are not part of it; give a ClosedJaxpr",
        )
    return []


def _explain_call(jitted: JitFunction, args: tuple, kwargs: dict[str, Any], **options: Any) -> Explanation:
    before = list(jitted._cache)
    apart = JitFunction(jitted._function, jitted._options, shared=False)
    start = time.perf_counter()
    source.names.marks_backward = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ImpureFunctionWarning)  # it is told on the page
            traced = apart.trace(*args, **kwargs)
    finally:
        source.names.marks_backward = False
    seconds = {"tracing": time.perf_counter() - start}
    _, leaves = apart.specialize(args, kwargs)
    explanation = _explain_program(traced.jaxpr, leaves, traced=traced, seconds=seconds, **options)
    model = explanation.model
    keys = [*before, *(key for key in apart._cache if key not in before)]
    model["traces"] = _traces(jitted, keys, list(traced.leaf_names))
    for finding in check_pure(jitted)(*args, **kwargs).findings:
        model["findings"].append(_finding(explanation, finding))
    explanation.renew_places()
    return explanation


def _finding(explanation: Explanation, finding: Any) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "text": f"{finding.what}; {finding.consequence}.",
        "advice": finding.advice,
        "place": explanation.tables.place_at(finding.file, finding.line),
    }


def _traces(jitted: JitFunction, keys: Sequence[tuple], names: list[str]) -> list[dict[str, Any]]:
    """The types that the function was traced for, in order, each with what differs from the nearest before it."""
    told = cache_misses.history(keys, names, jitted._argument_name)
    return [
        {"types": [aval.str_short() for aval in key[1]], "because": lines}
        for key, lines in zip(keys, told, strict=True)
    ]


def _explain_program(
    closed: ClosedJaxpr,
    arguments: Sequence[Any],
    *,
    measure: bool,
    numbers: bool,
    compile: bool,
    traced: Traced | None = None,
    seconds: dict[str, float] | None = None,
) -> Explanation:
    name = closed.jaxpr.name or "program"
    if (measure or numbers) and len(arguments) != len(closed.in_avals):
        raise located(
            TypeError, f"explain: to run `{name}` it needs {len(closed.in_avals)} arrays, got {len(arguments)}"
        )
    maker = ModelMaker()
    names = list(traced.leaf_names) if traced is not None else None
    model = maker.model(closed, name, names)
    model["seconds"], model["findings"], model["traces"] = dict(seconds or {}), [], []
    explanation = Explanation(model, maker.tables)
    arrays = [to_array(x) for x in arguments] if measure or numbers else []
    if compile or measure:
        _add_compiled(model, maker, traced or _trace_of(closed), arrays if measure else None)
    if numbers:
        model["numerics"] = {"fields": numerics.FIELDS, "rows": numerics.ranges(closed, arrays, maker.numbers)}
    explanation.renew_places()
    return explanation


def _trace_of(closed: ClosedJaxpr) -> Traced:
    """A program as `jit` would have it."""
    return jit(jaxpr_as_fun(closed)).trace(*map(struct_of, closed.in_avals))


def _add_compiled(model: dict[str, Any], maker: ModelMaker, traced: Traced, arrays: Any) -> None:
    start = time.perf_counter()
    lowered = traced.lower()
    text = lowered.as_text(debug_info=True)
    model["seconds"]["lowering"] = time.perf_counter() - start
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    start = time.perf_counter()
    options = tuple(sorted(traced._compiler_options))
    name = f"{model['name']}_{digest}"
    runner = compiled_program.runner_with_lines(lowered._prepared, lowered._where, name, options)
    model["seconds"]["XLA"] = time.perf_counter() - start
    executable = runner.executable
    memory = executable.memory_analysis()
    first = len(traced.jaxpr.consts)
    model["compiled"] = {
        "kernels": compiled.kernels(executable.hlo_text(), maker.tables),
        "memory": {key: int(getattr(memory, f"{key}_size_in_bytes", 0)) for key in _SIZES},
        "platform": str(lowered._platform),
        "flops": float(executable.cost_analysis().get("flops", 0.0)),
        "shardings": _shardings(runner, first),
        "donated": sorted(lowered.donate_argnums),
    }
    if arrays is not None:
        donated = set(runner.donated) if hasattr(runner, "donated") else set()
        operands = [*traced.jaxpr.consts, *arrays]

        def run() -> Sequence[Any]:
            return runner([x.copy() if i in donated else x for i, x in enumerate(operands)])

        model["measured"] = measuring.measure(run)


def _shardings(runner: Any, first: int) -> dict[str, list[str]]:
    """How arguments and results are sharded; nothing on one device."""
    if not isinstance(runner, compiled_program.MeshRunner):
        return {"arguments": [], "results": []}
    inputs, outputs = list(runner.in_shardings)[first:], list(runner.out_shardings)
    return {"arguments": list(map(_sharding, inputs)), "results": list(map(_sharding, outputs))}


def _sharding(sharding: Any) -> str:
    if not hasattr(sharding, "spec"):
        return str(sharding)
    sizes = ", ".join(f"{name}: {size}" for name, size in sharding.mesh.shape.items())
    entries = ", ".join(map(str, sharding.spec))
    return f"({entries}) over {{{sizes}}}" if entries else f"whole on each of {{{sizes}}}"
