"""What caches are asked by: objects that are made and dropped, so that their addresses are used again, are never
mistaken for each other, and neither are values that Python calls equal."""

from __future__ import annotations

import ast
import dataclasses
import enum
import gc
import itertools
import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.compat.extension import Primitive as NamedPrimitive
from purax.compat.extension import lower_fun, register_lowering
from purax.config import make_user_context
from purax.core.avals import ShapedArray
from purax.core.exact import exact, exact_in_python
from purax.core.primitive import Primitive
from purax.sharding import Mesh, NamedSharding, PartitionSpec

pytestmark = pytest.mark.sampled(2)

ROOT = Path(__file__).parents[1] / "purax"
ROUNDS = 40


@pytest.fixture(autouse=True)
def _quick_collections():
    """The collector looks at what a test makes, and not at all that a long process holds."""
    gc.freeze()
    yield
    gc.unfreeze()


# -- objects that live for one round


def named_primitive(k, several):
    p = NamedPrimitive("scaled")
    p.multiple_results = several
    as_results = (lambda x: [x]) if several else (lambda x: x)
    p.def_abstract_eval(lambda x: as_results(ShapedArray(x.shape, x.dtype)))
    register_lowering(p, lower_fun(lambda x: as_results(x * k), multiple_results=several))
    f = px.jit(lambda x: p.bind(x)[0] if several else p.bind(x), purity="off")
    return float(f(jnp.float32(1))), p


class Scaled(Primitive):
    """x k, where k is the primitive's own."""

    name = "scaled"

    def __init__(self, k):
        self.k = k

    def infer(self, x):
        return x

    def host(self, x):
        return x * np.float32(self.k)

    def lower(self, builder, x):
        return builder.emit("multiply", [x, builder.constant(self.k, x.aval)], x.aval)

    def jvp(self, primals, tangents):
        return self.bind(*primals), self.bind(*tangents)

    def batch(self, operands, batch_axes):
        return self.bind(*operands), batch_axes[0]


def own_primitive(k, how):
    p = Scaled(k)
    wrapped = {"eager": lambda f: f, "vmap": px.vmap, "jvp": lambda f: lambda x: px.jvp(f, (x,), (x,))[1]}[
        how
    ]
    return float(wrapped(p.bind)(jnp.ones(1))[0]), p


def function(k):
    def f(x):
        return x * k

    return float(px.jit(f)(1.0)), f


def derivative(k):
    @px.custom_jvp
    def f(x):
        return x

    def rule(primals, tangents):
        return primals[0], tangents[0] * k

    f.defjvp(rule)
    return float(px.jit(px.grad(f))(1.0)), f


def reverse_derivative(k):
    @px.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, g: (g * k,))
    return float(px.grad(px.jit(f))(1.0)), f


def batching_rule(k):
    @px.custom_batching.custom_vmap
    def f(x):
        return x

    f.def_vmap(lambda size, batched, x: (x * k, True))
    return float(px.jit(px.vmap(f))(jnp.ones(2))[0]), f


def callback(k):
    def f(x):
        return np.float32(k) * x

    call = px.jit(lambda x: px.pure_callback(f, ShapedArray((), np.dtype(np.float32)), x))
    return float(call(1.0)), f


def static_object(k):
    class Holder:
        scale = k

    value = Holder()
    return float(scaled_by_holder(1.0, value)), value


scaled_by_holder = px.jit(lambda x, holder: x * holder.scale, static_argnums=1)


def node_class(k):
    class Node:
        def __init__(self, x):
            self.x = x

    px.tree_util.register_pytree_node(
        Node, lambda n: ((n.x,), k), lambda scale, parts: Node(parts[0] * scale)
    )
    return float(px.jit(lambda n: n)(Node(jnp.float32(1))).x) / k, Node


def tree_key(k):
    key = (k, "key")
    return float(px.jit(lambda d: sum(v * kk[0] for kk, v in d.items()))({key: jnp.float32(1)})), key


def mesh(k):
    names = (f"axis{k % 3}",)
    over = Mesh(np.array(px.devices()[:1]), names)
    x = px.device_put(np.full(2, k, np.float32), NamedSharding(over, PartitionSpec(*names)))
    summed = px.shard_map(
        lambda v: px.lax.psum(v, names), mesh=over, in_specs=PartitionSpec(*names), out_specs=PartitionSpec()
    )
    return float(px.jit(summed)(x)[0]), over


def reference(k):
    cell = px.new_ref(jnp.float32(k))

    @px.jit
    def add():
        cell[...] += 1.0
        return cell[...]

    return float(add()) - 1, cell


def captured_array(k):
    x = jnp.full(2, k, jnp.float32)
    return float(px.jit(lambda y: y * x)(1.0)[0]), x


def compiled(k):
    f = px.jit(lambda x: x * k).lower(1.0).compile()
    return float(f(jnp.asarray(1.0))), f


def dtype(k):
    kind = np.dtype([("f", np.float32), (f"n{k}", np.int8)])["f"]
    return float(jnp.asarray(k, kind)), kind


def branch(k):
    one, other = (lambda x: x * k), (lambda x: x)
    return float(px.lax.cond(True, one, other, 1.0)), one


CONTEXTS: list[Any] = [None]
scaled_by_context = px.jit(lambda x: x * CONTEXTS[0].value, purity="off")


def user_context(k):
    context = CONTEXTS[0] = make_user_context(-1.0)
    outside = float(scaled_by_context(1.0))
    with context(k):
        return float(scaled_by_context(1.0)) + outside + 1, context


def policy(k):
    def keep(prim, *_, **__):
        return k % 2 == 0

    f = px.checkpoint(lambda x: jnp.sin(x) * k, policy=keep)
    return float(px.grad(f)(0.0)), keep


KINDS = {
    "primitives by name": partial(named_primitive, several=False),
    "primitives by name with several results": partial(named_primitive, several=True),
    "primitives, eager": partial(own_primitive, how="eager"),
    "primitives, vmap": partial(own_primitive, how="vmap"),
    "primitives, jvp": partial(own_primitive, how="jvp"),
    "functions": function,
    "custom_jvp": derivative,
    "custom_vjp": reverse_derivative,
    "custom_vmap": batching_rule,
    "callbacks": callback,
    "static arguments": static_object,
    "node classes": node_class,
    "keys of trees": tree_key,
    "meshes": mesh,
    "references": reference,
    "captured arrays": captured_array,
    "compiled programs": compiled,
    "dtypes": dtype,
    "branches": branch,
    "contexts": user_context,
    "policies": policy,
}


@pytest.mark.parametrize("kind", KINDS)
def test_objects_that_take_each_others_place(kind):
    rounds = 12 if kind in ("callbacks", "meshes") else ROUNDS
    wrong = []
    for k in range(1, rounds):
        value, made = KINDS[kind](float(k) if kind not in ("meshes", "dtypes") else k)
        if value != k:
            wrong.append((k, value))
        del made
        if not k % 4:
            gc.collect()
    assert not wrong


def test_all_kinds_together():
    """Objects of one kind take the places of those of another, too."""
    random = np.random.default_rng(0)
    names = [name for name in KINDS if name not in ("callbacks", "meshes")]
    for k, name in enumerate(random.choice(names, 60), 1):
        assert KINDS[name](k)[0] == k, name
        if not k % 10:
            gc.collect()


def test_a_key_that_is_used_twice_is_told_by_itself():
    with px.debug_key_reuse(True):
        for seed in range(50):
            px.random.normal(px.random.key(seed))


# -- values that are equal


class Pair(NamedTuple):
    a: Any
    b: Any = 0


class Other(NamedTuple):
    a: Any
    b: Any = 0


@dataclasses.dataclass(frozen=True)
class Options:
    a: Any
    b: Any = 0


class Level(enum.IntEnum):
    ONE = 1


class Whole(int):
    pass


NUMBERS = [0, 1, True, False, 1.0, 0.0, -0.0, 1 + 0j, 0j, complex(0, -0.0), complex(-0.0, 0), 2, 2.0]
NUMBERS += [np.float32(0), np.float32(-0.0), np.float64(1), np.float32(1), np.int32(1), np.bool_(True)]
NUMBERS += [float("nan"), -float("nan"), Level.ONE, Whole(1), 2**70, float(2**70), "1", b"1", None]
WRAPPERS = [
    lambda v: v,
    lambda v: (v,),
    lambda v: (2, (v, "a")),
    lambda v: Pair(v),
    lambda v: Other(v),
    lambda v: (Pair(1, v),),
    lambda v: Options(v),
    lambda v: Options(1, (v,)),
    lambda v: frozenset([v]),
    lambda v: frozenset([(v, 3)]),
]


def test_exact_tells_equal_values_apart_and_the_same_ones_not():
    values = [wrap(v) for wrap in WRAPPERS for v in NUMBERS]
    again = [wrap(v) for wrap in WRAPPERS for v in NUMBERS]
    known: dict[Any, int] = {}
    for i, value in enumerate(values):
        assert known.setdefault(exact(value), i) == i, (value, values[known[exact(value)]])
    assert all(known[exact(value)] == i for i, value in enumerate(again))


def test_exact_in_c_is_as_in_python():
    others = [np.dtype("f4"), np.float32, jnp.sin, object(), Ellipsis, slice(1, 2), px.lax.Precision.HIGHEST]
    for wrap, value in itertools.product(WRAPPERS, NUMBERS + others):
        try:
            value = wrap(value)
        except TypeError:  # a slice cannot be hashed
            continue
        assert exact(value) == exact_in_python(value) or value != value, value


EQUAL = [(1, True, 1.0), (0.0, -0.0, 0, False), ((1,), (1.0,), (True,)), ((0.0, 2), (-0.0, 2), (0, 2))]
EQUAL += [(Options(1), Options(1.0)), (Pair(0.0), Pair(-0.0), Other(-0.0)), (np.float32(0), np.float32(-0.0))]


def described(x):
    return str(jnp.asarray(x)), jnp.asarray(x).dtype


def first_of(value):
    while isinstance(value, (tuple, Options)):
        value = value.a if isinstance(value, Options) else value[0]
    return value


@pytest.mark.parametrize("values", EQUAL, ids=str)
@pytest.mark.parametrize("trees", [False, True])
def test_equal_static_arguments_are_different_programs(values, trees):
    f = px.jit(
        lambda x, s, *, t=0: (x[0] if trees else x) * first_of(s) * (1 + first_of(t)), static_argnums=1
    )
    g = px.jit(lambda x, *, s: (x[0] if trees else x) * first_of(s), static_argnames="s")
    x = jnp.arange(3)
    argument = [x] if trees else x
    for value in values * 3:
        expected = described(x * first_of(value))
        assert described(f(argument, value)) == expected
        assert described(g(argument, s=value)) == expected


@pytest.mark.parametrize("values", EQUAL, ids=str)
def test_equal_values_of_a_context_are_different_programs(values):
    context = make_user_context()
    f = px.jit(lambda x: x * first_of(context.value))
    x = jnp.arange(3)
    for value in values * 3:
        with context(value):
            assert context.value is value
            assert described(f(x)) == described(x * first_of(value))


@pytest.mark.parametrize("fill", [(0.0, -0.0), (-0.0, 0.0)])
@pytest.mark.parametrize("how", [lambda f: f, px.jit, px.vmap, lambda f: lambda x: px.jvp(f, (x,), (x,))[0]])
def test_equal_parameters_are_different_operations(fill, how):
    x, at = jnp.ones((1, 3)), jnp.array([7])
    for value in fill * 20:
        f = how(lambda x, value=value: x.at[..., at].get(mode="fill", fill_value=value))
        assert np.signbit(f(x)).all() == np.signbit(value)


# -- the source

# Where the `id` of an object is used, and why nothing else can have it meanwhile.
USES = {
    "callbacks/callback.py:number_of": "the entry has a weak reference, which is compared",
    "compat/modules/core.py:OpaqueTraceState.__hash__": "the object holds the trace",
    "compat/private/hijax.py:HiKind.home": "the entry holds the cell",
    "compat/private/hijax.py:HiKind.settle": "the entry holds the cell",
    "core/leaks.py:describe_holders": "what is looked at is held meanwhile",
    "core/leaks.py:_path": "what is looked at is held meanwhile",
    "core/leaks.py:_referrers": "what is looked at is held meanwhile",
    "core/source.py:code_is_internal": "the entry holds the code object",
    "experimental/checkify/functionalize.py:FirstError.program": "the entry holds the program",
    "experimental/jet.py:JetTrace._by_rule": "the entry holds the operands",
    "numpy/_indexing/slice_lengths.py:Sum.of": "sums are compared while the bounds of one slice are held",
    "pallas/call.py:_Request._refuse_captured": "the program holds its constants",
    "pallas/call.py:_reachable": "the kernel holds what it names",
    "random/reuse.py:consume": "the entry has the key or a weak reference, which is compared",
    "lowering/effort.py:_Walk._visit": "the program that is looked at holds those inside",
    "interpreters/linearize.py:HostStep.equations": "the array that is kept holds the residual",
    "interpreters/linearize.py:Tape.to_jaxpr.atom": "the entry holds the value",
    "lowering/cpu/outline.py:number_equations": "the equations hold their parameters",
    "interpreters/plain_numbers.py:made_of": "the entry goes with the array",
    "interpreters/plain_numbers.py:plain": "the entry has a weak reference to the array, which is compared",
    "execution/compiled_program.py:Runner._take_over": "the operands are held by the call",
    "interpreters/staging.py:StagingTrace.atom": "the entry holds the constant",
    "xla/array.py:constant": "the entry holds the array",
    "xla/array.py:is_constant": "the entry is compared",
    "control_flow/memory_budget.py:Budget.choose": "the program holds its equations",
    "control_flow/memory_budget.py:Budget.choose.cut.repeat": "the program holds its equations",
    "control_flow/memory_budget.py:_report": "the program holds its equations",
    "core/dimensions.py:Atom.of": "the entry's operands hold the scope",
    "core/tracebacks.py:_guarded": "the entry holds the code",
    "core/tracebacks.py:_linked": "the exception that is looked at holds those it is linked to",
    "interpreters/minimum_cut.py:minimum_cut": "the program holds its equations",
    "planning/walk.py:Walker.walk": "the program that is walked over holds those inside",
    "planning/walk.py:_Walk._links": "the program that is walked over holds its equations",
    "planning/walk.py:_Walk._timeline": "the program that is walked over holds those inside",
    "core/limits.py:_check_items": "the dict holds the items",
    "xla/living_arrays.py:_arrays_in": "the classes of arrays that live are held by these",
    "xla/living_arrays.py:_concrete_kinds": "a class that is gone has no objects to be looked for",
    "xla/living_arrays.py:arrays_in_process": "the classes of arrays that live are held by these",
    "xla/living_arrays.py:_names": "the arrays and frames are held meanwhile",
    "xla/living_arrays.py:description": "the arrays are held meanwhile",
}


# Whole packages: what they know by its id is held by the frame, the closure or the arguments of the function that is
# being traced, and they forget it when that returns.
PACKAGES = ("purity", "python_control_flow")


def uses_of_id(file: Path) -> set[str]:
    found = set()

    def visit(node, names):
        for child in ast.iter_child_nodes(node):
            inner = names
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = (*names, child.name)
            if isinstance(child, ast.Call) and re.match(r"id\(|map\(id\b|.*key=id\b", ast.unparse(child)):
                found.add(f"{file.relative_to(ROOT).as_posix()}:{'.'.join(names)}")
            visit(child, inner)

    visit(ast.parse(file.read_text()), ())
    return found


def test_every_use_of_id_has_its_reason():
    files = [file for file in ROOT.rglob("*.py") if file.relative_to(ROOT).parts[0] not in PACKAGES]
    found = set().union(*map(uses_of_id, files))
    assert found - set(USES) == set(), (
        "keep the object instead of its id, or say why nothing else can have that"
    )
    assert set(USES) - found == set()
