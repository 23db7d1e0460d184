"""References do what they do in jax: each program below runs on both, and gives the same values and contents."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax as px


def in_jit(lib, jnp):
    ref = lib.new_ref(jnp.array([1.0, 2.0, 3.0]))

    @lib.jit
    def f(ref, i, x):
        ref[i] += x
        ref[1:] = ref[1:] * 2
        return ref[...].sum(), ref[:2]

    return f(ref, 0, 5.0), f(ref, 2, 1.0), ref[...]


def captured_by_jit(lib, jnp):
    ref = lib.new_ref(jnp.zeros(2))

    @lib.jit
    def f(x):
        ref[...] += x
        return ref[0]

    first = f(1.0)
    ref[...] = jnp.array([10.0, 20.0])
    return first, f(2.0), ref[...]


def captured_by_nested_jits(lib, jnp):
    ref = lib.new_ref(jnp.zeros(()))

    @lib.jit
    def inner(x):
        ref[...] = ref[...] * 2 + x

    @lib.jit
    def outer(x):
        inner(x)
        inner(x + 1)
        return ref[...]

    return outer(3.0), outer(4.0), ref[...]


def passed_and_captured_by_another(lib, jnp):
    ref, total = lib.new_ref(jnp.ones(2)), lib.new_ref(jnp.zeros(2))

    @lib.jit
    def f(ref):
        total[...] += ref[...]
        ref[...] = total[...] * 3

    f(ref), f(ref)
    return ref[...], total[...]


def made_inside(lib, jnp):
    @lib.jit
    def f(x):
        ref = lib.new_ref(jnp.zeros(3))
        ref[...] += x
        ref[0] = 7.0
        return lib.ref.freeze(ref)

    return f(2.0)


def made_inside_and_differentiated(lib, jnp):
    def f(x):
        ref = lib.new_ref(x)
        for _ in range(3):
            ref[...] = ref[...] * jnp.sin(x)
        return ref[...]

    return lib.grad(f)(0.7), lib.jit(lib.grad(f))(0.7), lib.jvp(f, (0.7,), (1.0,))


def made_inside_and_vectorized(lib, jnp):
    def f(x):
        ref = lib.new_ref(x * 0)
        ref[...] += x
        return ref[...] * 2

    return lib.vmap(f)(jnp.arange(3.0)), lib.vmap(lib.grad(f))(jnp.arange(3.0))


def vectorized(lib, jnp):
    ref = lib.new_ref(jnp.arange(6.0).reshape(2, 3))

    def f(ref, x):
        ref[0] = ref[0] + x
        return ref[...].sum()

    return lib.vmap(f, in_axes=(1, 0))(ref, jnp.arange(3.0)), ref[...]


def read_by_a_vectorized_function(lib, jnp):
    ref = lib.new_ref(jnp.arange(3.0))
    return lib.vmap(lambda x: x * ref[...])(jnp.arange(2.0)), lib.vmap(lambda x, r: x + r[0], (0, None))(
        jnp.arange(2.0), ref
    )


def in_scan(lib, jnp):
    ref = lib.new_ref(jnp.zeros(()))

    def step(carry, x):
        ref[...] += x
        return carry + ref[...], ref[...]

    eager = lib.lax.scan(step, 0.0, jnp.arange(4.0))
    return eager, lib.jit(lambda xs: lib.lax.scan(step, 0.0, xs, reverse=True))(jnp.arange(4.0)), ref[...]


def stepped_through(lib, jnp):
    ref = lib.new_ref(jnp.arange(3.0))

    def step(carry, part):
        part[...] = part[...] * 2 + carry
        return carry + part[...], None

    return lib.lax.scan(step, 1.0, ref), ref[...]


def in_loops(lib, jnp):
    ref, other = lib.new_ref(jnp.ones(2)), lib.new_ref(jnp.array(0))

    def count(i, x):
        ref[i % 2] *= 2.0
        other[...] += 1
        return x + ref[0]

    def double(x):
        ref[...] = ref[...] + x
        return x * 2

    first = lib.lax.fori_loop(0, 5, count, 0.0)
    second = lib.jit(lambda n: lib.lax.fori_loop(0, n, count, 0.0))(3)
    third = lib.lax.while_loop(lambda x: x < 10.0, double, 1.0)
    fourth = lib.lax.while_loop(lambda x: x < other[...], lambda x: x + 3, 0)
    return first, second, third, fourth, ref[...], other[...]


def in_branches(lib, jnp):
    ref, other = lib.new_ref(jnp.zeros(())), lib.new_ref(jnp.zeros(()))

    def yes(x):
        ref[...] += x
        return x

    def no(x):
        other[...] -= x
        return x * 2

    results = [lib.lax.cond(p, yes, no, 3.0) for p in (True, False)]
    results += [lib.jit(lambda p, x: lib.lax.cond(p, yes, no, x))(p, 2.0) for p in (True, False)]
    results.append(lib.lax.switch(1, [yes, no, lambda x: x], 5.0))
    return results, ref[...], other[...]


def in_checkpoint(lib, jnp):
    ref = lib.new_ref(jnp.ones(()))

    @lib.checkpoint
    def f(x):
        ref[...] += 1.0
        return jnp.sin(x) * ref[...]

    return f(2.0), ref[...]


def not_differentiated(lib, jnp):
    ref = lib.new_ref(jnp.ones(()))

    def f(x, ref):
        ref[...] = lib.lax.stop_gradient(x) * 2
        return x * ref[...]

    return lib.grad(f)(3.0, ref), ref[...], lib.jit(lib.grad(f))(4.0, ref), ref[...]


def changed_in_parts(lib, jnp):
    ref = lib.new_ref(jnp.zeros((2, 3)))
    ref[0] = jnp.arange(3.0)
    ref[:, 1] = jnp.array([7.0, 8.0])
    ref[jnp.array([0, 1]), jnp.array([2, 0])] = jnp.array([5.0, 6.0])
    before = lib.ref.swap(ref, (0, 0), jnp.array(9.0))
    lib.ref.addupdate(ref, 1, jnp.ones(3))
    lib.ref.set(ref, (1, 2), jnp.array(4.0))
    return before, lib.ref.get(ref, 0), ref[...]


PROGRAMS = [
    in_jit,
    captured_by_jit,
    captured_by_nested_jits,
    passed_and_captured_by_another,
    made_inside,
    made_inside_and_differentiated,
    made_inside_and_vectorized,
    vectorized,
    read_by_a_vectorized_function,
    in_scan,
    stepped_through,
    in_loops,
    in_branches,
    in_checkpoint,
    not_differentiated,
    changed_in_parts,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_jax(program):
    ours, theirs = program(px, px.numpy), program(jax, jax.numpy)
    found, tree = px.tree.flatten(ours)
    wanted, _ = jax.tree.flatten(theirs)
    assert str(tree) == str(jax.tree.structure(theirs))
    for x, y in zip(found, wanted, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-6)


def test_it_has_the_attributes_of_its_value():
    ref = px.new_ref(px.numpy.ones((2, 3)))
    assert (ref.shape, ref.dtype, ref.ndim, ref.size, len(ref)) == ((2, 3), np.float32, 2, 6, 2)
    assert repr(ref).startswith("Ref([[1., 1., 1.]")
    assert px.typeof(ref) == px.ref.AbstractRef(px.typeof(ref[...]))
    assert str(px.typeof(ref)) == "Ref{float32[2,3]}"
    assert px.jit(lambda r: isinstance(r, px.Ref))(ref)


def test_a_part_of_it_is_written_through():
    ref = px.new_ref(px.numpy.zeros((2, 2)))
    part = ref.at[1]
    part[0] = 3.0
    part.at[1][...] = 4.0
    assert ref[...].tolist() == [[0.0, 0.0], [3.0, 4.0]]
    assert part[...].tolist() == [3.0, 4.0] and part.shape == (2,)


def test_functions_can_return_references_that_they_make():
    ref = px.jit(lambda x: px.new_ref(x * 2))(px.numpy.ones(2))
    ref[0] = 5.0
    assert ref[...].tolist() == [5.0, 2.0]


def test_a_captured_reference_of_another_type_is_traced_anew():
    ref = px.new_ref(px.numpy.ones(2))
    read = px.jit(lambda: ref[...] + 1)
    assert read().shape == (2,)
    ref._value = px.numpy.ones(3)
    assert read().shape == (3,)


def test_what_is_only_read_compiles_once():
    traced = []
    ref = px.new_ref(px.numpy.zeros(2))

    @px.jit
    def f(x):
        traced.append(1)
        return ref[...] + x

    for i in range(3):
        ref[...] = px.numpy.full(2, float(i))
        assert f(1.0).tolist() == [i + 1.0] * 2
    assert len(traced) == 1


def the_same_twice(ref):
    return px.jit(lambda a, b: a[...] + b[...])(ref, ref)


def passed_and_captured(ref):
    return px.jit(lambda a: a[...] + ref[...])(ref)


def returned(ref):
    return px.jit(lambda a: a)(ref)


def batched_write(ref):
    def f(x):
        ref[...] = x

    px.vmap(f)(px.numpy.arange(2.0))


def differentiated_write(ref):
    def f(x):
        ref[...] = x
        return x

    px.grad(f)(1.0)


def freed(ref):
    px.ref.free_ref(ref)
    return ref[...]


def of_a_reference(ref):
    return px.new_ref(ref)


def in_a_custom_rule(ref):
    @px.custom_jvp
    def f(x):
        return x * ref[...]

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return px.jit(px.grad(f))(1.0)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (the_same_twice, "appears twice"),
        (passed_and_captured, "both closed over"),
        (returned, "returns Ref"),
        (batched_write, "a vmapped value is written"),
        (differentiated_write, "lax.stop_gradient"),
        (freed, "was freed"),
        (of_a_reference, "needs an array"),
        (in_a_custom_rule, "Pass the value as an argument"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_cannot_be_done_says_so(program, message):
    ref = px.new_ref(px.numpy.ones(()))
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=message):
        program(ref)


def test_a_failed_trace_leaves_the_reference_as_it_was():
    ref = px.new_ref(px.numpy.ones(()))

    @px.jit
    def f(x):
        ref[...] = x
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        f(2.0)
    assert float(ref[...]) == 1.0
    ref[...] = 3.0
    assert float(ref[...]) == 3.0


def test_a_reference_does_not_outlive_its_function():
    kept = []
    px.jit(lambda x: kept.append(px.new_ref(x)))(1.0)
    with pytest.raises(px.errors.UnexpectedTracerError, match="outside of the transformed function"):
        kept[0][...]


def test_writing_one_is_no_side_effect():
    total = px.new_ref(px.numpy.zeros(2))

    def f(x):
        total[0] += x
        return x

    px.jit(f, purity="strict")(2.0)
    px.jit(f, purity="strict")(3.0)
    assert total[...].tolist() == [5.0, 0.0]


@pytest.mark.parametrize("name", ["get", "set", "swap", "addupdate"])
@pytest.mark.parametrize("value", [{0: 1.0}, [1.0], np.ones(3), None], ids=["dict", "list", "array", "None"])
def test_what_is_no_reference_is_refused(name, value):
    with pytest.raises(TypeError, match=f"{name}: `ref` must be a reference"):
        getattr(px.ref, name)(value, 0, *([2.0] if name != "get" else []))
