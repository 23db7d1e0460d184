"""Dtypes of 64 bits that are asked for by name: 32 bits and a warning, unless 64 bits are enabled."""

import warnings

import jax
import numpy as np
from jax import lax, random
from jax import numpy as jnp

ones, wide, key = jnp.ones(4), np.ones(4), random.key(0)
CASES = {
    "zeros": lambda: jnp.zeros(3, "float64"),
    "ones": lambda: jnp.ones(3, np.float64),
    "empty": lambda: jnp.empty(3, jnp.float64),
    "full": lambda: jnp.full(3, 1, dtype="uint64"),
    "full_like": lambda: jnp.full_like(ones, 1, dtype=np.complex128),
    "zeros_like of a type": lambda: jnp.zeros_like(jax.ShapeDtypeStruct((3,), "float64")),
    "zeros_like of NumPy": lambda: jnp.zeros_like(wide),
    "array": lambda: jnp.array(wide, dtype=np.dtype("float64")),
    "array of NumPy": lambda: jnp.array(wide),
    "array of integers": lambda: jnp.array([1, 2], "int64"),
    "asarray": lambda: jnp.asarray(wide, wide.dtype),
    "astype": lambda: ones.astype("float64"),
    "astype complex": lambda: ones.astype(np.complex128),
    "astype under jit": lambda: jax.jit(lambda x: x.astype("int64"))(ones),
    "view": lambda: ones.view("uint64"),
    "arange": lambda: jnp.arange(3, dtype="int64"),
    "linspace": lambda: jnp.linspace(0, 1, 3, dtype="float64"),
    "eye": lambda: jnp.eye(2, dtype="float64"),
    "tri": lambda: jnp.tri(2, dtype="int64"),
    "sum": lambda: ones.sum(dtype="float64"),
    "mean": lambda: jnp.mean(ones, dtype=np.float64),
    "cumsum": lambda: jnp.cumsum(ones, dtype="float64"),
    "dot": lambda: jnp.dot(ones, ones, preferred_element_type="float64"),
    "name": lambda: jnp.float64(3),
    "name of integers": lambda: jnp.int64(ones),
    "frombuffer": lambda: jnp.frombuffer(wide.tobytes(), dtype="float64"),
    "dlpack": lambda: jnp.from_dlpack(wide),
    "convert_element_type": lambda: lax.convert_element_type(ones, "float64"),
    "bitcast": lambda: lax.bitcast_convert_type(ones, "float64"),
    "lax.full": lambda: lax.full((3,), 0, "float64"),
    "iota": lambda: lax.iota("int64", 3),
    "argmax": lambda: lax.argmax(ones, 0, "int64"),
    "lax.dot": lambda: lax.dot(ones, ones, preferred_element_type=np.float64),
    "normal": lambda: random.normal(key, (3,), "float64"),
    "uniform": lambda: random.uniform(key, (3,), np.float64),
    "randint": lambda: random.randint(key, (3,), 0, 5, "int64"),
    "bits": lambda: random.bits(key, (3,), "uint64"),
    "gamma": lambda: random.gamma(key, 1.0, (3,), np.float64),
    "one_hot": lambda: jax.nn.one_hot(jnp.arange(3), 3, dtype="float64"),
    "initializer": lambda: jax.nn.initializers.normal(1.0, dtype="float64")(key, (3,)),
    "result_type": lambda: jnp.result_type("float64"),
    "a NumPy scalar": lambda: np.float64(3) + ones,
    "a NumPy array": lambda: wide + ones,
    "at": lambda: ones.at[0].set(np.float64(3)),
    "device_put": lambda: jax.device_put(wide),
    "eval_shape": lambda: jax.eval_shape(lambda x: x, jax.ShapeDtypeStruct((3,), "float64")),
    "lower": lambda: jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((3,), "float64")).out_info,
    "callback": lambda: jax.pure_callback(lambda: np.float64(3), jax.ShapeDtypeStruct((), "float64")),
    "a type": lambda: jax.ShapeDtypeStruct((3,), "float64"),
    "promote_types": lambda: jnp.promote_types("float64", "int32"),
    "finfo": lambda: jnp.finfo("float64"),
    "dtype": lambda: jnp.dtype("float64"),
    "name.dtype": lambda: jnp.float64.dtype,
    "canonicalize_dtype": lambda: jax.dtypes.canonicalize_dtype("float64"),
    "to NumPy": lambda: np.asarray(ones, np.float64),
    "float": lambda: jnp.zeros(3, float),
    "a type of Python's": lambda: lax.convert_element_type(ones, int),
    "logarithms": lambda: jax.scipy.stats.gamma.logsf(ones, 1.5),
    "harmonics": lambda: jax.scipy.special.sph_harm_y(
        jnp.array([1]), jnp.array([1]), ones[:1], ones[:1], n_max=2
    ),
}


def tell(cases):
    """Prints the dtype that each case has, and what it warns of."""
    for name in cases:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = CASES[name]()
                found = str(getattr(result, "dtype", result))
            except (ValueError, TypeError) as error:
                found = type(error).__name__
        told = sorted({" ".join(str(w.message).split()[:4]) for w in caught if w.category is UserWarning})
        print(f"{name}: {found}", *told)


print("-- by default", jax.config.jax_enable_x64)
tell(CASES)

FEW = ("zeros", "astype", "astype under jit", "array of NumPy", "normal", "name", "result_type", "eval_shape")
print("-- in a context")
with jax.enable_x64(True):
    tell(FEW)
    made = jnp.ones(3)
tell(FEW[:3])
print("kept outside:", made.dtype, (made + made).dtype, jnp.sin(made).dtype, jnp.zeros_like(made).dtype)

print("-- errors")
jax.config.update("jax_explicit_x64_dtypes", "error")
tell(FEW)
print("-- allowed")
jax.config.update("jax_explicit_x64_dtypes", "allow")
tell(("zeros", "astype", "astype under jit", "array of NumPy", "name", "result_type"))
jax.config.update("jax_explicit_x64_dtypes", "warn")

print("-- enabled")
jax.config.update("jax_enable_x64", True)
tell(name for name in CASES if name != "harmonics")  # of float32 angles; jax says complex128
with jax.enable_x64(False):
    tell(FEW)

# Python integers wrap around in narrow dtypes where they meet an array, and are refused where one is made of them.
narrow = jnp.ones(2, jnp.uint8)
print(narrow * -1, jnp.full(2, -1, jnp.uint8), narrow > -1, narrow.at[0].set(-1), jnp.clip(narrow, -1, 300))
try:
    jnp.array(-1, dtype=jnp.uint8)
except OverflowError:
    print("out of bounds")
