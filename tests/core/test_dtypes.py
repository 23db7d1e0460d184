"""dtypes against jax as an oracle, exhaustively where the tables are finite, and the laws of the lattice."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import purax.dtypes as public
import purax.typing
from purax.config import config
from purax.core import dtypes
from purax.core.dtypes import ALL_DTYPES, TypePromotionError, as_dtype, promote_pair, result_type
from purax.core.promotion import Lattice, _standard_edges, _strict_edges

WEAK = (int, float, complex)
BUILTIN = [dtype for dtype in ALL_DTYPES if dtype.isbuiltin == 1]
WIDE = {np.dtype(name) for name in ("int64", "uint64", "float64", "complex128")}
NARROW = {dtype: np.dtype(f"{dtype.name.rstrip('0123456789')}{dtype.itemsize * 4}") for dtype in WIDE}
CATEGORIES = (
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
    np.complexfloating, np.bool_, np.flexible,
)  # fmt: skip


class Value:
    """Stands for an array: all that promotion needs to know of one."""

    def __init__(self, dtype, weak_type=False):
        self.dtype, self.weak_type = np.dtype(dtype), weak_type

    def __repr__(self):
        return f"Value({self.dtype}, {self.weak_type})"


class Key(dtypes.ExtendedDtype):
    type = dtypes.prng_key
    element_shape = (2,)

    def __init__(self, name):
        self.name = name


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def enable_x64(request):
    """Both libraries in the same x64 mode."""
    with config.override(enable_x64=request.param), jax.enable_x64(request.param), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # jax says that it truncates explicit dtypes
        yield request.param


@pytest.fixture(params=["standard", "strict"])
def mode(request):
    with config.override(numpy_dtype_promotion=request.param), jax.numpy_dtype_promotion(request.param):
        yield request.param


def outcome(function, *args, **options):
    """The result, or `TypePromotionError` where either library raises its own."""
    try:
        return function(*args, **options)
    except (TypePromotionError, jax.dtypes.TypePromotionError):
        return TypePromotionError


def label(node):
    return node.__name__ if isinstance(node, type) else str(node)


# --- promotion


@pytest.mark.parametrize("a", [*ALL_DTYPES, *WEAK], ids=label)
def test_promote_types_agrees_with_jax(a, enable_x64, mode):
    for b in (*ALL_DTYPES, *WEAK):
        expected = outcome(jnp.promote_types, a, b)
        found = outcome(dtypes.promote_types, a, b)
        if expected is not TypePromotionError and not enable_x64:
            # jax names float64 even when the result is weak and so float32 in this mode; purax names float32.
            if promote_pair(*dtypes._dtype_argument(a), *dtypes._dtype_argument(b))[1]:
                expected = NARROW.get(expected, expected)
        assert found == expected, (a, b)


@pytest.mark.parametrize("scalar", [True, 1, 1.5, 2j, int, float, complex, bool], ids=repr)
def test_result_type_with_python_scalars_agrees_with_jax(scalar, enable_x64, mode):
    for dtype in ALL_DTYPES:
        if dtype in WIDE and not enable_x64:
            continue  # the one place where purax differs: see the tests of explicit dtypes
        expected = outcome(
            jax.dtypes.result_type, jax.ShapeDtypeStruct((), dtype), scalar, return_weak_type_flag=True
        )
        assert outcome(result_type, Value(dtype), scalar, return_weak_type_flag=True) == expected, dtype
        assert outcome(result_type, scalar, Value(dtype), return_weak_type_flag=True) == expected, dtype


def test_result_type_of_numpy_values_agrees_with_jax(enable_x64, mode):
    for a, b in itertools.product(ALL_DTYPES, repeat=2):
        arrays = np.zeros(2, a), np.zeros((), b)[()]
        expected = outcome(jax.dtypes.result_type, *arrays, return_weak_type_flag=True)
        assert outcome(result_type, *arrays, return_weak_type_flag=True) == expected, (a, b)


def test_result_type_of_weak_arrays_agrees_with_jax(enable_x64, mode):
    weak = []
    for made_with_x64 in (False, True):
        with jax.enable_x64(made_with_x64):
            weak += [jnp.asarray(scalar) for scalar in (1, 1.5, 2j)]
    assert all(array.weak_type for array in weak)
    strong = [jnp.zeros((), name) for name in ("bool", "int8", "uint32", "bfloat16", "float32", "complex64")]
    for operands in itertools.chain(
        itertools.product(weak, repeat=1), itertools.product(weak, weak + strong)
    ):
        expected = outcome(jax.dtypes.result_type, *operands, return_weak_type_flag=True)
        own = [Value(array.dtype, array.weak_type) for array in operands]
        assert outcome(result_type, *own, return_weak_type_flag=True) == expected, own


def operands(enable_x64):
    usable = [dtype for dtype in ALL_DTYPES if enable_x64 or dtype not in WIDE]
    scalars = st.sampled_from([True, 1, 1.5, 2j, np.float64(1), np.int64(1), np.uint8(1), np.zeros(2)])
    return st.lists(st.one_of(scalars, st.sampled_from(usable)), min_size=1, max_size=5)


@pytest.mark.parametrize("x64", [False, True])
@given(data=st.data())
def test_result_type_of_many_operands_agrees_with_jax(x64, data):
    args = data.draw(operands(x64))
    with config.override(enable_x64=x64), jax.enable_x64(x64):
        expected = outcome(
            jax.dtypes.result_type,
            *(jax.ShapeDtypeStruct((), arg) if isinstance(arg, np.dtype) else arg for arg in args),
            return_weak_type_flag=True,
        )
        own = [Value(arg) if isinstance(arg, np.dtype) else arg for arg in args]
        assert outcome(result_type, *own, return_weak_type_flag=True) == expected


def test_explicit_64_bit_dtypes_are_kept_without_x64():
    with config.override(enable_x64=False):
        for a, b in itertools.product(BUILTIN, repeat=2):
            found = result_type(Value(a), Value(b))
            assert found == result_type(a, b) == dtypes.promote_types(a, b)
            if {a, b} & WIDE and not dtypes.result_type(a, b, return_weak_type_flag=True)[1]:
                with config.override(enable_x64=True):
                    assert found == result_type(a, b)  # as if x64 were on
        assert result_type(Value("float64"), 1.0) == "float64"
        assert result_type(Value("float64"), np.float32(1)) == "float64"
        assert result_type(Value("int64"), 1) == "int64"
        assert result_type(Value("int64"), 1.0) == "float32"
        assert result_type(np.zeros(2, "float64"), np.zeros(2, "int64")) == "float32"
        assert result_type("float64", np.dtype("int32")) == "float64"


def test_explicit_64_bit_dtypes_agree_with_jax_where_it_allows_them():
    if not hasattr(jax.config, "jax_explicit_x64_dtypes"):
        pytest.skip("this jax has no such mode")
    before = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", "allow")
    try:
        with jax.enable_x64(False), config.override(enable_x64=False):
            for a, b in itertools.product(BUILTIN, repeat=2):
                expected = jax.dtypes.result_type(a, b, return_weak_type_flag=True)
                assert result_type(a, b, return_weak_type_flag=True) == expected, (a, b)
            for dtype, scalar in itertools.product(BUILTIN, (True, 1, 1.5, 2j)):
                expected = jax.dtypes.result_type(dtype, scalar, return_weak_type_flag=True)
                assert result_type(dtype, scalar, return_weak_type_flag=True) == expected, (dtype, scalar)
    finally:
        jax.config.update("jax_explicit_x64_dtypes", before)


@pytest.mark.parametrize("lattice", [_standard_edges(False), _standard_edges(True), _strict_edges()])
def test_lattice_is_a_semilattice(lattice):
    lattice = Lattice(lattice)
    nodes = (*ALL_DTYPES, *WEAK)
    for a, b in itertools.product(nodes, repeat=2):
        join = lattice.join((a, b))
        assert join == lattice.join((b, a))
        if join is None:
            assert not lattice.above(a) & lattice.above(b)  # no common bound at all, rather than several
        else:
            assert join in lattice.above(a) and join in lattice.above(b)
            assert lattice.join((a, join)) == join
        for c in (np.dtype("uint32"), np.dtype("int32"), np.dtype("bfloat16"), int, float, complex):
            left = None if join is None else lattice.join((join, c))
            assert left == lattice.join((a, b, c))
    for a in nodes:
        assert lattice.join((a,)) == lattice.join((a, a)) == a
        assert all(a not in lattice.above(b) for b in lattice.above(a) if b != a)  # no cycles


def test_promotion_follows_the_flags_of_the_thread():
    def pair():
        return promote_pair(np.dtype("int32"), False, np.dtype("float32"), True)

    assert pair() == (np.dtype("float32"), True)
    with config.override(enable_x64=True):
        assert pair() == (np.dtype("float64"), True)
    with config.override(numpy_dtype_promotion="strict"), pytest.raises(TypePromotionError):
        pair()
    assert pair() == (np.dtype("float32"), True)


def test_results_are_the_known_objects():
    known = {id(dtype) for dtype in ALL_DTYPES}
    odd = [np.dtype("longlong"), np.dtype("f4", metadata={"a": 1}), np.dtype("ulonglong"), np.dtype("int64")]
    for a, b in itertools.product(odd, repeat=2):
        assert id(result_type(a, b)) in known
        assert id(result_type(Value(a), Value(b), Value("bool"))) in known
        assert id(as_dtype(a)) in known
        assert id(result_type(np.zeros(2, a))) in known


@pytest.mark.parametrize(
    ("args", "strict", "words"),
    [
        (("float8_e4m3fn", "bfloat16"), False, ["float8_e4m3fn and bfloat16", "astype('float32')"]),
        (("int4", "int8"), False, ["int4 and int8", "astype('int32')"]),
        (("int4", 1.5), False, ["int4 and Python float"]),
        (("int32", "float32"), True, ["int32 and float32", "'strict'", "'standard'"]),
        ((dtypes.float0, "float32"), False, ["float0 does not mix", "float32"]),
        ((Key("key<fry>"), "float32"), False, ["key<fry> does not mix", "float32"]),
        ((Key("key<fry>"), 1), False, ["key<fry> does not mix"]),
    ],
)
def test_promotion_errors_name_the_dtypes_and_the_way_out(args, strict, words):
    with config.override(numpy_dtype_promotion="strict" if strict else "standard"):
        with pytest.raises(TypePromotionError) as caught:
            result_type(*args)
    assert isinstance(caught.value, ValueError)
    for word in words:
        assert word in str(caught.value)


def test_extended_dtypes_promote_to_themselves():
    key = Key("key<fry>")
    assert result_type(key, key) is key
    assert promote_pair(key, False, key, False) == (key, False)
    assert result_type(dtypes.float0, dtypes.float0) is dtypes.float0


@pytest.mark.parametrize("bad", [[1, 2], (1.0,), {}, object(), b"abc"], ids=lambda bad: type(bad).__name__)
def test_result_type_refuses_what_is_no_array(bad):
    with pytest.raises(TypeError, match=r"not an array|dtype"):
        result_type(bad)
    with pytest.raises(TypeError, match="not an array"):
        dtypes.dtype_and_weak(bad)


def test_result_type_needs_an_argument():
    with pytest.raises(ValueError, match="at least one"):
        result_type()


# --- dtypes of values


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_dtype_of_numpy_values_is_canonical(dtype, enable_x64):
    expected = (jax.dtypes.canonicalize_dtype(dtype), False)
    array = np.zeros((2, 3), dtype)
    assert dtypes.dtype_and_weak(array) == expected
    assert dtypes.dtype_and_weak(array[0, 0]) == expected
    assert dtypes.dtype_and_weak(np.ma.masked_array(array)) == expected
    assert dtypes.canonicalize_dtype(dtype) == expected[0]
    assert not dtypes.is_weakly_typed(array) and not dtypes.is_weakly_typed(array[0, 0])


def test_dtype_of_python_values(enable_x64):
    class Level(int):
        pass

    class Wrapper:
        def __jax_array__(self):
            return Value("int8")

    for value in (True, 1, 1.5, 2j, 2**80):
        expected = jax.dtypes.result_type(value, return_weak_type_flag=True)
        assert dtypes.dtype_and_weak(value) == expected
        assert dtypes.is_weakly_typed(value) == expected[1]
        assert dtypes.python_scalar_dtype(value) == dtypes.python_scalar_dtype(type(value)) == expected[0]
    assert dtypes.dtype_and_weak(Level(3)) == (dtypes.default_int(), True)
    assert dtypes.is_weakly_typed(Level(3))
    assert dtypes.dtype_and_weak(Wrapper()) == (np.dtype("int8"), False)
    assert dtypes.default_int().itemsize == dtypes.default_float().itemsize == (8 if enable_x64 else 4)
    assert (
        dtypes.default_complex().itemsize == 2 * dtypes.default_uint().itemsize == (16 if enable_x64 else 8)
    )


def test_arrays_keep_their_own_dtype():
    for dtype in ALL_DTYPES:
        assert dtypes.dtype_and_weak(Value(dtype)) == (dtype, False)
        assert dtypes.dtype_and_weak(Value(dtype, True)) == (dtype, True)
    assert dtypes.is_weakly_typed(Value("int8", True)) and not dtypes.is_weakly_typed(Value("int8"))


@pytest.mark.parametrize(
    "name", ["object", "S3", "U3", "M8[s]", "m8[s]", "V4", np.longdouble, np.clongdouble]
)
def test_arrays_of_other_things_are_refused(name):
    with pytest.raises(TypeError, match="not supported; supported are bool, integers"):
        dtypes.dtype_and_weak(np.zeros(2, name))


def test_scalar_type_agrees_with_jax():
    for dtype in ALL_DTYPES:
        assert dtypes.scalar_type_of(np.zeros(2, dtype)) is jax.dtypes.scalar_type_of(np.zeros(2, dtype))
    with pytest.raises(TypeError, match="float0"):
        dtypes.scalar_type_of(np.zeros(2, dtypes.float0))


# --- parsing


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_explicit_dtypes_are_kept(dtype, enable_x64):
    scalar_class = getattr(
        jnp, "bool_" if dtype == np.bool_ else dtype.name
    )  # as purax.numpy's: it has a dtype
    for spelling in (dtype, dtype.type, dtype.name, dtype.newbyteorder(), scalar_class, copy.deepcopy(dtype)):
        assert as_dtype(spelling) is dtype
    assert as_dtype(pickle.loads(pickle.dumps(dtype))) is dtype


@pytest.mark.parametrize(
    "spelling", [float, int, bool, complex, "float", "int", "bool", "complex", "uint", None]
)
def test_python_types_mean_the_default_dtypes(spelling, enable_x64):
    assert as_dtype(spelling) == jax.dtypes.canonicalize_dtype(spelling)


@pytest.mark.parametrize(
    "code", ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D", "<f4", ">i8"]
)
def test_type_codes_mean_what_they_mean_to_numpy(code):
    assert as_dtype(code) == np.dtype(code).newbyteorder("=")


def test_float0_is_that_of_jax():
    assert dtypes.float0 == jax.dtypes.float0
    assert dtypes.float0.itemsize == 0
    assert as_dtype(jax.dtypes.float0) is dtypes.float0
    assert dtypes.dtype_and_weak(np.zeros(3, dtypes.float0)) == (dtypes.float0, False)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("flaot32", ["dtype must be a dtype", "'flaot32'", "Did you mean 'float32'"]),
        ("object", ["dtype 'object' is not supported", "complex64"]),
        (str, ["dtype '<U0' is not supported"]),
        (list, ["is not supported"]),
        ("M8[s]", ["datetime64[s]", "is not supported"]),
        (np.longdouble, ["is not supported"]),
        (np.floating, ["np.floating", "dtype=np.float32"]),
        (np.integer, ["np.integer", "dtype=np.int32"]),
        (np.zeros(3), ["got an array", "dtype=x.dtype"]),
        (1.5, ["dtype must be a dtype", "got 1.5"]),
        ([("a", 1)], ["dtype must be a dtype"]),
        ([("a", "f4")], ["is not supported"]),
    ],
    ids=repr,
)
def test_bad_dtypes_are_explained(bad, words):
    with pytest.raises(TypeError) as caught:
        as_dtype(bad)
    for word in words:
        assert word in str(caught.value)
    with pytest.raises(TypeError) as caught:
        as_dtype(bad, "preferred_element_type")
    assert str(caught.value).startswith("preferred_element_type ")


# --- categories


def test_issubdtype_agrees_with_jax():
    lower = [*ALL_DTYPES, *CATEGORIES, dtypes.float0, bool, int, float, complex, "f4", jnp.bfloat16, jnp.int4]
    upper = [*CATEGORIES, *ALL_DTYPES, *(dtype.type for dtype in ALL_DTYPES), bool, int, float, complex, "f4"]
    for a, b in itertools.product(lower, upper):
        assert dtypes.issubdtype(a, b) == jax.dtypes.issubdtype(a, b), (a, b)


def test_issubdtype_of_extended_dtypes_agrees_with_jax():
    own, other = Key("key<fry>"), jax.random.key(0).dtype
    categories = [(dtypes.extended, jax.dtypes.extended), (dtypes.prng_key, jax.dtypes.prng_key)]
    categories += [(category, category) for category in CATEGORIES] + [(np.dtype("f4"), np.dtype("f4"))]
    for a, b in categories:
        assert dtypes.issubdtype(own, a) == jax.dtypes.issubdtype(other, b), a
        assert dtypes.issubdtype(a, dtypes.extended) == jax.dtypes.issubdtype(b, jax.dtypes.extended), a
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert dtypes.is_extended(own) and not dtypes.is_inexact(own)


KINDS = (
    "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric",
)  # fmt: skip


def test_isdtype_agrees_with_jax():
    kinds = [*KINDS, ("bool", "complex floating"), ("int8", np.float32), *ALL_DTYPES, np.float32, "bfloat16"]
    for dtype, kind in itertools.product(ALL_DTYPES, kinds):
        assert dtypes.isdtype(dtype, kind) == jnp.isdtype(dtype, kind), (dtype, kind)
    with pytest.raises(ValueError, match="kind must be a dtype or one of 'bool'"):
        dtypes.isdtype("float32", "floating")


def test_predicates_and_kind_partition_the_dtypes():
    families = {
        "bool": dtypes.is_boolean, "integer": dtypes.is_integer, "float": dtypes.is_floating,
        "complex": dtypes.is_complex, "extended": dtypes.is_extended,
    }  # fmt: skip
    for dtype in (*ALL_DTYPES, dtypes.float0, Key("key<fry>")):
        true = [name for name, predicate in families.items() if predicate(dtype)] or ["float0"]
        assert true == [dtypes.kind(dtype)]
        assert dtypes.is_inexact(dtype) == dtypes.issubdtype(dtype, np.inexact)
        assert dtypes.is_unsigned(dtype) == dtypes.issubdtype(dtype, np.unsignedinteger)


def test_can_cast_agrees_with_jax():
    for a, b in itertools.product(ALL_DTYPES, repeat=2):
        for casting in ("no", "equiv", "safe", "same_kind", "unsafe"):
            assert dtypes.can_cast(a, b, casting) == jnp.can_cast(a, b, casting), (a, b, casting)
    key = Key("key<fry>")
    assert dtypes.can_cast(key, key) and not dtypes.can_cast(key, "float32")
    assert dtypes.can_cast(Value("int8"), "int16")


def test_limits_agree_with_jax():
    for dtype in ALL_DTYPES:
        if dtypes.is_integer(dtype):
            own, other = dtypes.iinfo(dtype), jnp.iinfo(dtype)
            assert (own.min, own.max, own.bits) == (other.min, other.max, other.bits)
        elif dtypes.is_inexact(dtype):
            own, other = dtypes.finfo(dtype), jnp.finfo(dtype)
            for name in (
                "bits",
                "eps",
                "max",
                "min",
                "tiny",
                "smallest_subnormal",
                "nmant",
                "maxexp",
                "minexp",
            ):
                assert getattr(own, name) == getattr(other, name), (dtype, name)
        assert dtypes.itemsize_bits(dtype) == jax.dtypes.itemsize_bits(dtype)
    assert dtypes.itemsize_bits(Key("key<fry>")) == 64


# --- related dtypes and names


@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_inexact_dtype_is_that_of_jax_functions(dtype, enable_x64):
    if dtype in WIDE and not enable_x64:
        assert dtypes.to_inexact_dtype(dtype) == as_dtype("complex128" if dtype.kind == "c" else "float64")
    elif dtypes.is_integer(dtype) and dtypes.itemsize_bits(dtype) < 4:
        assert dtypes.to_inexact_dtype(dtype) == "float32"  # jax has no functions for them
    else:
        expected = jax.eval_shape(jnp.exp, jax.ShapeDtypeStruct((), dtype)).dtype
        assert dtypes.to_inexact_dtype(dtype) == expected


def test_related_dtypes():
    for dtype in ALL_DTYPES:
        wide = dtypes.to_complex_dtype(dtype)
        assert dtypes.is_complex(wide) and (dtypes.to_complex_dtype(wide) is wide)
        real = dtypes.to_real_dtype(dtype)
        assert not dtypes.is_complex(real) and dtypes.to_real_dtype(real) is real
        if dtypes.is_complex(dtype):
            assert dtypes.to_complex_dtype(real) is dtype
            assert real == np.zeros(1, dtype).real.dtype
        numeric = dtypes.to_numeric_dtype(dtype)
        assert numeric is (dtypes.default_int() if dtype == np.bool_ else dtype)
    with pytest.raises(TypeError, match="float0"):
        dtypes.to_inexact_dtype(dtypes.float0)


def test_short_names_are_those_of_jaxprs():
    for dtype in (*ALL_DTYPES, dtypes.float0):
        with jax.enable_x64(True):
            text = str(jax.make_jaxpr(lambda x: x)(jax.ShapeDtypeStruct((2,), dtype)))
        assert f"a:{dtypes.short_name(dtype)}[2]" in text
    assert dtypes.short_name(Key("key<fry>")) == "key<fry>"
    assert len({dtypes.short_name(dtype) for dtype in ALL_DTYPES}) == len(ALL_DTYPES)
    assert (
        dtypes.dtype_name(dtypes.float0) == "float0" and dtypes.dtype_name(np.dtype("bfloat16")) == "bfloat16"
    )


def test_canonicalize_dtype_of_extended_dtypes():
    key = Key("key<fry>")
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="key<fry>"):
        dtypes.canonicalize_dtype(key)
    assert key.itemsize == 8 and repr(key) == "key<fry>"


# --- public names


def test_public_names_are_those_of_jax():
    assert {name for name in dir(jax.dtypes) if not name.startswith("_")} <= set(public.__all__)
    assert {name for name in dir(jax.typing) if not name.startswith("_")} <= set(purax.typing.__all__)
    assert public.bfloat16 is ml_dtypes.bfloat16


def test_array_like_can_be_checked_while_a_program_runs():
    class Traced:
        aval, dtype = "f32[]", np.dtype("f4")

    for value in (1, 1.5, True, 2j, np.zeros(2), np.float32(1), np.bool_(True), Traced()):
        assert isinstance(value, purax.typing.ArrayLike)
    for value in ([1], (1,), "1", None, object()):
        assert not isinstance(value, purax.typing.ArrayLike)
