"""Every parameter of a public function has an effect, raises when it is given, or stands on a list with its reason.

By the source: a parameter is used where its name is read, other than to be handed to a function of purax that ignores
it in turn. Naming it (`del x`, `_ = x`) is no use. What is read without an effect is found by `test_option_effects.py`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import textwrap
import types
from typing import Any, NoReturn

import pytest

import purax
from purax.core.primitive import Primitive
from purax.lowering.threaded_effects import Threader

# What lies below the public functions; these are reached by their public names.
INNER = (
    "callbacks compat control_flow core native ops purity python_control_flow testing transforms xla".split()
)

# --- the list

PERMISSIONS = "a permission, which nothing obliges to use"
PROMISES = "a promise of the user's, which is not needed"
FIXED = "the signature is one that others call"

SPEC = ("partitions", "reduced", "unreduced")

# By module and parameter, or function and parameter.
REASONS = {
    # SciPy's permissions to overwrite arguments, and to leave out its checks. jax's documentation calls them unused.
    **{f"purax.scipy.linalg.{name}": PERMISSIONS for name in ("overwrite_a", "overwrite_b", "overwrite_c")},
    "purax.scipy.linalg.check_finite": "values are not known when a program is compiled; NaN gives NaN",
    "purax.scipy.cluster.vq.check_finite": "values are not known when a program is compiled; NaN gives NaN",
    "purax.scipy.linalg.lwork": "the size of LAPACK's memory, which purax sees to",
    "purax.scipy.linalg.turbo": "an algorithm of old versions of SciPy",
    "purax.scipy.linalg.lapack_driver": "which of LAPACK's functions SciPy calls",
    "purax.scipy.linalg.debug": "an option that SciPy no longer has",
    "purax.scipy.linalg.eigh_tridiagonal(tol)": "an error that is allowed; results are as exact as they can be",
    "purax.scipy.linalg.eigh_tridiagonal(key)": "for random vectors to start from, of which none are needed",
    "purax.scipy.special.bessel_jn(n_iter)": "recurrences are as long as full accuracy takes",
    "purax.experimental.sparse.linalg.spsolve(tol)": "of the solver for a GPU; jax ignores it on the CPU, too",
    "purax.experimental.sparse.transform.sparsify(use_tracer)": "two ways to do the same",
    "purax.experimental.sparse.shaping.bcoo_gather(unique_indices)": PROMISES,
    "purax.experimental.sparse.shaping.bcoo_gather(indices_are_sorted)": PROMISES,
    # NumPy's.
    "purax.numpy._sorting.sets.assume_unique": PROMISES,
    "purax.numpy._sorting.sorting.argsort(stable)": PERMISSIONS + ": it is always stable",
    "purax.numpy._sorting.unique.unique(sorted)": PERMISSIONS + ": they are always sorted",
    "purax.numpy._reductions.histogram.histogram_bin_edges(weights)": "NumPy says that it has no effect yet",
    "purax.numpy._elementwise.rounding.nan_to_num(copy)": PERMISSIONS,
    # XLA's and its libraries'.
    "purax.lax.linalg.qr(use_magma)": "which library a GPU uses",
    "purax.lax.linalg.eigh(sort_eigenvalues)": PERMISSIONS + ": they are always sorted",
    "purax.lax.polar.qdwh(is_hermitian)": PROMISES,
    "purax.lax.ordering.dce_sink(prevent_mlir_dce)": "values always stay in the text",
    "purax.lax.patches.conv_general_dilated_patches(precision)": "nothing is multiplied",
    "purax.control_flow.custom_vjp.custom_vjp.defvjp(optimize_remat)": "unused parts of rules are always left out",
    "purax.ffi.lowering.skip_ffi_layout_processing": "layouts are always those that were given",
    "purax.core.jaxpr.Jaxpr.__init__(effects)": "effects follow from the equations",
    "purax.core.jaxpr.Jaxpr.__init__(is_high)": "programs hold no values of user-defined types",
    "purax.experimental.buffer_callback.buffer_callback(command_buffer_compatible)": "the host has no command buffers",
    "purax.experimental.topologies.make_mesh(contiguous_submeshes)": "of the networks between TPUs",
    "purax.numpy._sorting.largest_elements.top_k(sorted)": "the elements stand in order in any case",
    "purax.nn.quantized_products.scaled_dot_general(implementation)": "there is one; jax ignores it, too",
    "purax.random.custom_implementations.CustomImplementation.bits(inline)": "the user's function is traced anyway",
    "purax.experimental.mesh_utils.contiguous_submeshes": "of the networks between TPUs",
    "purax.experimental.mesh_utils.allow_split_physical_axes": "of the networks between TPUs",
    "purax.experimental.array_serialization.GlobalAsyncCheckpointManager.deserialize(concurrent_gb)": (
        "a limit; parts are read one after the other"
    ),
    "purax.export.exported.Exported.in_shardings_jax(mesh)": "an exported function says nothing of shardings",
    "purax.export.exported.Exported.out_shardings_jax(mesh)": "an exported function says nothing of shardings",
    "purax.sharding.shardings.ndim": "how many axes an array has, which makes no difference on one device",
    "purax.nn.initializers.zeros(key)": FIXED,
    "purax.nn.initializers.ones(key)": FIXED,
    **{f"purax.control_flow.checkpoint.{name}": FIXED for name in ("primitive", "avals", "params")},
    **{f"purax.core.specs.PartitionSpec.__init__({name})": "for `__new__`" for name in SPEC},
    "purax.core.trace.Tracer.settled(settle)": "for tracers that stand for other values, which have their own",
    "purax.scipy.stats.kde.gaussian_kde.tree_unflatten(aux_data)": FIXED,
}

# What kernels for TPUs and GPUs are told of memory, copies and time: results do not depend on it, and an XLA program
# over the grid sees to it itself.
KERNEL_HINTS = set(
    """
    args barrier cluster_names collective collective_axes core_index cost_estimate delay_release device_id_type devices
    hints interpret kwargs label layout memory_space mesh_kwargs metadata nanos packed priority ref sem shard_count
    thread_name tiling transforms value values
    """.split()
)

# --- the public functions


@functools.cache
def public_modules() -> list[types.ModuleType]:
    found = [purax]
    for info in pkgutil.walk_packages(purax.__path__, "purax."):
        parts = info.name.split(".")[1:]
        if parts[0] in INNER or any(part.startswith("_") for part in parts):
            continue
        module = importlib.import_module(info.name)
        # The other files of a package are its own business: it has the names that are public.
        is_whole = info.ispkg or len(parts) == 1 or hasattr(module, "__all__")
        if is_whole or parts[0] in ("experimental", "scipy") or is_module_of_jax(".".join(parts)):
            found.append(module)
    return found


def is_module_of_jax(name: str) -> bool:
    try:
        return importlib.util.find_spec(f"jax.{name}") is not None
    except ModuleNotFoundError:  # the package is a single file in jax
        return False


def is_own(x: Any) -> bool:
    return (getattr(x, "__module__", None) or "").startswith("purax")


@functools.cache
def public_functions() -> dict[types.CodeType, types.FunctionType]:
    """The Python functions behind all public names, and the public methods of public classes."""
    found: dict[types.CodeType, types.FunctionType] = {}

    def add(x: Any) -> None:
        if isinstance(x, (staticmethod, classmethod)):
            x = x.__func__
        for step in (x, getattr(x, "fun", None)):  # custom derivative rules wrap it once more
            function = inspect.unwrap(step) if callable(step) else None
            if isinstance(function, types.FunctionType) and is_own(function):
                found.setdefault(function.__code__, function)

    for module in public_modules():
        for name in sorted({*vars(module), *dir(module)}):  # also names that are looked up when they are first used
            if name.startswith("_") or not is_own(x := getattr(module, name)):
                continue
            if not inspect.isclass(x):
                add(x)
                if callable(x) or isinstance(x, types.ModuleType):
                    continue
                x = type(x)  # an object whose methods are the functions
            if issubclass(x, (Primitive, Threader)) or getattr(x, "_is_protocol", False):
                continue  # their rules have the parameters of the contract
            for method_name, method in vars(x).items():
                if not method_name.startswith("_") or method_name in ("__init__", "__call__"):
                    add(method)
    return found


# --- what a function does with a parameter


@functools.cache
def definition(function: types.FunctionType) -> Any:
    """The syntax tree of a function; None where it has no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    node = tree.body[0]
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def parameters(function: types.FunctionType) -> list[str]:
    """The names of a function's parameters, but for `self`, `cls` and those that begin with `_`."""
    names = list(inspect.signature(function, follow_wrapped=False).parameters)
    if "." in function.__qualname__ and names and names[0] in ("self", "cls"):
        names = names[1:]
    return [name for name in names if not name.startswith("_")]


def is_refusal(function: types.FunctionType, node: Any) -> bool:
    """Whether the whole function raises, whatever it is given."""
    is_text = lambda each: isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)  # noqa: E731
    body = [each for each in node.body if not is_text(each) and not isinstance(each, ast.Delete)]
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Call):
        called = resolved(function, body[0].value.func)
        return called is not None and called.__annotations__.get("return") in ("NoReturn", NoReturn)
    return bool(body) and isinstance(body[0], ast.Raise)


def resolved(function: types.FunctionType, called: ast.expr) -> types.FunctionType | None:
    """The function of purax that a call names, if it is one."""
    scope = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    if isinstance(called, ast.Name):
        target = scope.get(called.id)
    elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        owner = scope.get(called.value.id)
        target = getattr(owner, called.attr, None) if isinstance(owner, types.ModuleType) else None
    else:
        return None
    target = inspect.unwrap(target) if callable(target) else None
    return target if isinstance(target, types.FunctionType) and is_own(target) else None


def handed_to(function: types.FunctionType, call: ast.Call) -> dict[int, tuple[types.FunctionType, str]]:
    """For the arguments of a call that are plain names: the function of purax that gets them, and as what."""
    target = resolved(function, call.func)
    if target is None or any(isinstance(x, ast.Starred) for x in call.args):
        return {}
    signature = inspect.signature(target, follow_wrapped=False).parameters
    positional = [
        name
        for name, p in signature.items()
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    pairs = [*zip(call.args, positional, strict=False)]
    pairs += [(each.value, each.arg) for each in call.keywords if each.arg in signature]
    return {id(x): (target, name) for x, name in pairs if isinstance(x, ast.Name)}


def is_used(function: types.FunctionType, name: str, seen: tuple = ()) -> bool:
    if (function, name) in seen:
        return False
    node = definition(function)
    if node is None or is_refusal(function, node):
        return True
    in_source = [x.arg for x in (*node.args.posonlyargs, *node.args.args)]
    position = function.__code__.co_varnames.index(name)
    if position < len(in_source):  # rows of a table have names of their own for the parameters of their family
        name = in_source[position]
    ignored: set[int] = set()
    handed: dict[int, tuple[types.FunctionType, str]] = {}
    for each in ast.walk(node):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Name):
            ignored.add(id(each.value))
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "_":
            ignored |= set(map(id, ast.walk(each.value)))
        if isinstance(each, ast.Call):
            handed |= handed_to(function, each)
            if isinstance(each.func, ast.Name) and each.func.id == "locals":
                return True
    for statement in node.body:
        for each in ast.walk(statement):
            if not (isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)):
                continue
            if id(each) in ignored:
                continue
            if id(each) in handed and not is_used(*handed[id(each)], seen=(*seen, (function, name))):
                continue
            return True
    return False


def unused(function: types.FunctionType) -> list[str]:
    return [name for name in parameters(function) if not is_used(function, name)]


def keys(function: types.FunctionType, name: str) -> list[str]:
    """The entries of the list that hold for a parameter: of the function, its module, or a package of that."""
    path = function.__module__.split(".")
    packages = [".".join(path[:n]) for n in range(2, len(path) + 1)]
    return [f"{function.__module__}.{function.__qualname__}({name})", *(f"{p}.{name}" for p in packages)]


def test_every_parameter_has_an_effect_or_a_reason():
    missing, needed, hints = [], set(), set()
    for function in public_functions().values():
        for name in unused(function):
            if function.__module__.startswith("purax.pallas.") and name in KERNEL_HINTS:
                hints.add(name)
                continue
            entries = [key for key in keys(function, name) if key in REASONS or shortened(key) in REASONS]
            needed |= set(entries) | set(map(shortened, entries))
            if not entries:
                missing.append(f"{function.__module__}.{function.__qualname__}({name})")
    assert not missing, "taken and ignored:\n" + "\n".join(sorted(missing))
    unneeded = set(REASONS) - needed
    assert not unneeded, f"these have an effect now; take them off the list: {sorted(unneeded)}"
    assert len(REASONS) < 60, "the list shall stay short"
    assert hints == KERNEL_HINTS, (
        f"these have an effect now; take them off the list: {sorted(KERNEL_HINTS - hints)}"
    )


def shortened(key: str) -> str:
    """An entry without the module in a package: `purax.scipy.linalg.solve(…)` for what a module of it defines."""
    head, _, tail = key.rpartition(".")
    package = head.rpartition(".")[0]
    return f"{package}.{tail}" if "(" in tail else key


def test_the_surface_is_found():
    names = {f"{f.__module__}.{f.__qualname__}" for f in public_functions().values()}
    assert len(names) > 1500
    for name in (
        "api.transfer.device_put",
        "api.vmap.vmap",
        "control_flow.custom_vjp.custom_vjp.defvjp",
    ):
        assert f"purax.{name}" in names


# --- planted functions


def forgets(x, option=None):
    return x


def only_names(x, option=None):
    del option
    return x


def names_it_for_nothing(x, option=None):
    _ = option
    option  # noqa: B018
    return x


def reads(x, option=None):
    return x if option is None else -x


def refuses(x, option=None):
    if option is not None:
        raise NotImplementedError
    return x


def raises_always(x, option=None):
    raise NotImplementedError


def uses_inside(x, option=None):
    return [lambda: option for _ in x]


forgets.__module__ = reads.__module__ = "purax.planted"


def hands_to_nothing(x, option=None):
    return forgets(x, option=option), forgets(x, option)


def hands_on(x, option=None):
    return forgets(x, option), reads(x, option=option)


@pytest.mark.parametrize("function", [forgets, only_names, names_it_for_nothing, hands_to_nothing])
def test_an_ignored_parameter_is_found(function):
    assert unused(function) == ["option"]


@pytest.mark.parametrize("function", [reads, refuses, raises_always, uses_inside, hands_on])
def test_a_parameter_with_an_effect_is_not(function):
    assert unused(function) == []
