"""What kernels are written with, besides `purax.numpy`: conditions, loops, scratch memory, masks, atomic updates."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from purax import debug, lax
from purax import numpy as jnp
from purax.core import source
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.numpy import asarray
from purax.pallas import settings
from purax.pallas.pointers import PointerRef
from purax.pallas.refs import KernelRef, View, as_memory, is_reference, of_dtype, uninitialized
from purax.pallas.specs import MemoryRef
from purax.tree.registry import tree_flatten, tree_unflatten


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """A decorator that calls the function below it if a condition holds.

    Args:
        condition: a bool, or an array of no dimensions.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def first_only(o_ref):
    ...     o_ref[...] = jnp.zeros((2,))
    ...     @pl.when(pl.program_id(0) == 0)
    ...     def _():
    ...         o_ref[...] = jnp.ones((2,))
    >>> spec = pl.BlockSpec((2,), lambda i: i)
    >>> pl.pallas_call(first_only, px.ShapeDtypeStruct((4,), jnp.float32), grid=(2,), out_specs=spec)()
    Array([1., 1., 0., 0.], dtype=float32)
    """

    def decorated(function: Callable[[], None]) -> None:
        if isinstance(condition, (bool, np.bool_)):
            if condition:
                function()
            return
        lax.cond(condition, lambda: _nothing(function, "when"), lambda: None)

    return decorated


def _nothing(function: Callable[..., Any], what: str, *args: Any) -> None:
    """Calls a function that must return nothing."""
    result = function(*args)
    if result is not None:
        raise located(
            TypeError,
            f"the function under `pl.{what}` returns {shown(result)}; write it to a reference instead",
        )


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: int | bool | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that calls the function below it for each number from `lower` up to `upper`.

    Args:
        lower, upper: the range.
        init_carry: what the function gets as second argument at first; what it returns is what it gets then.
        step: from one number to the next.
        unroll: how many iterations are written out.

    Returns:
        The decorator; what it returns is the last carry.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def squares(o_ref):
    ...     @pl.loop(0, 4)
    ...     def _(i):
    ...         o_ref[i] = i * i
    >>> pl.pallas_call(squares, px.ShapeDtypeStruct((4,), jnp.int32))()
    Array([0, 1, 4, 9], dtype=int32)
    """

    def decorated(function: Callable[..., Any]) -> Any:
        known = all(isinstance(x, (int, np.integer)) for x in (lower, upper, step))
        if known and int(step) == 0:
            raise located(ValueError, "pl.loop: the step must not be 0")
        start = lower if isinstance(lower, Array) else np.int32(lower)
        by = step if isinstance(step, Array) else np.int32(step)
        count = -((lower - upper) // step) if known else lax.div(upper - start + by - 1, by)
        if known:
            count = max(int(count), 0)

        def body(i, carry):
            number = start + i * by
            if init_carry is None:
                _nothing(function, "loop", number)
                return None
            return function(number, carry)

        return lax.fori_loop(0, count, body, init_carry, unroll=unroll)

    return decorated


def allocate(what: Any, name: str) -> KernelRef:
    """New memory of a type, which holds what uninitialized memory holds."""
    if isinstance(what, type) or (callable(what) and not hasattr(what, "shape")):
        what = what()
    if hasattr(what, "scratch_type"):
        what = what.scratch_type()
    if not hasattr(what, "shape") or not hasattr(what, "dtype"):
        raise located(
            TypeError,
            f"scratch memory is described by a shape and a dtype in some memory, such as "
            f"`pl.ANY((8, 128), jnp.float32)`; got {shown(what)}",
        )
    aval = ShapedArray(tuple(what.shape), what.dtype)
    initial = jnp.zeros(aval.shape, aval.dtype) if getattr(what, "is_zero", False) else uninitialized(aval)
    return settings.make_ref(initial, name, getattr(what, "memory_space", None), False)


def run_scoped(
    f: Callable[..., Any],
    *types: Any,
    collective_axes: Hashable | tuple[Hashable, ...] = (),
    **kw_types: Any,
) -> Any:
    """Calls a function with memory that exists while it runs.

    Args:
        f: the function.
        *types: types of memory, such as `pl.ANY((8,), jnp.float32)`, one for each argument.
        collective_axes: of no meaning on the CPU.
        **kw_types: types of memory for keyword arguments.

    Returns:
        What the function returns.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def total(x_ref, o_ref):
    ...     def body(sum_ref):
    ...         sum_ref[0] = jnp.sum(x_ref[...])
    ...         o_ref[...] = sum_ref[...]
    ...     pl.run_scoped(body, pl.ANY((1,), jnp.float32))
    >>> pl.pallas_call(total, px.ShapeDtypeStruct((1,), jnp.float32))(jnp.ones(3))
    Array([3.], dtype=float32)
    """
    leaves, tree = tree_flatten((types, kw_types), is_leaf=lambda x: isinstance(x, MemoryRef))
    args, keywords = tree_unflatten(tree, [allocate(x, "scoped memory") for x in leaves])
    return f(*args, **keywords)


def with_scoped(
    *types: Any, collective_axes: Hashable | tuple[Hashable, ...] = (), **kw_types: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function gets memory after its arguments, as by `run_scoped`.

    Args:
        *types: types of memory.
        collective_axes: of no meaning on the CPU.
        **kw_types: types of memory for keyword arguments.

    >>> from purax import pallas as pl
    >>> import purax.numpy as jnp
    >>> @pl.with_scoped(pl.ANY((1,), jnp.float32))
    ... def body(x_ref, scratch_ref):
    ...     scratch_ref[...] = x_ref[...]
    """

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            def body(*refs: Any, **named: Any) -> Any:
                return function(*args, *refs, **kwargs, **named)

            return run_scoped(body, *types, collective_axes=collective_axes, **kw_types)

        return run

    return decorated


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """A function of arrays from one of references: it returns what they hold in the end.

    >>> import purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2
    >>> pl.run_state(double)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """

    def run(values: Any) -> Any:
        leaves, tree = tree_flatten(values)
        refs = [KernelRef(asarray(x), "a reference") for x in leaves]
        _nothing(f, "run_state", tree_unflatten(tree, refs))
        return tree_unflatten(tree, [ref[...] for ref in refs])

    return run


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """Reads memory, where a mask is true.

    Args:
        ref: a reference, or a part of one, `ref.at[index]`.
        mask: bools; where they are false, the memory is not read.
        other: what stands there instead; without it what stands there is not defined.
        cache_modifier, eviction_policy, volatile: hints for GPUs.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> from purax.pallas import triton
    >>> def head(x_ref, o_ref):
    ...     o_ref[...] = triton.load(x_ref, mask=jnp.arange(4) < 2, other=0.0)
    >>> pl.pallas_call(head, px.ShapeDtypeStruct((4,), jnp.float32))(jnp.ones(4))
    Array([1., 1., 0., 0.], dtype=float32)
    """
    memory = as_memory(ref, "load")
    if other is not None and mask is None:
        raise located(ValueError, "load: `other` is what stands where `mask` is false; give a mask")
    owner, where = _place(memory)
    chosen = None if mask is None else _mask(mask, memory.shape, "load")
    if isinstance(owner, PointerRef) and where is not None:
        return owner.loaded(
            where, chosen, other, cache=cache_modifier, eviction=eviction_policy, volatile=bool(volatile)
        )
    if chosen is None:
        return memory[...]
    if isinstance(memory, View):
        return memory.load_where(chosen, other)
    return memory._get_where(memory._index(...), chosen, other)


def _place(memory: Any) -> tuple[Any, Any]:
    """The memory that a part belongs to, and the index of the part there; None if it is seen in another way."""
    if isinstance(memory, View):
        return memory._of, memory._where
    return memory, memory._index(...)


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Writes memory, where a mask is true.

    Args:
        ref: a reference, or a part of one, `ref.at[index]`.
        val: what is written.
        mask: bools; where they are false, the memory stays as it is.
        eviction_policy: a hint for GPUs.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> from purax.pallas import triton
    >>> def head(x_ref, o_ref):
    ...     o_ref[...] = jnp.zeros(4)
    ...     triton.store(o_ref, x_ref[...], mask=jnp.arange(4) < 2)
    >>> pl.pallas_call(head, px.ShapeDtypeStruct((4,), jnp.float32))(jnp.ones(4))
    Array([1., 1., 0., 0.], dtype=float32)
    """
    memory = as_memory(ref, "store")
    owner, place = _place(memory)
    where = memory._index(...)
    chosen = None if mask is None else _mask(mask, memory.shape, "store")
    value = memory._value_for(where, val)
    if isinstance(owner, PointerRef) and place is not None:
        owner.stored(place, value, chosen, eviction=eviction_policy)
    elif chosen is None:
        memory._set(where, value)
    elif isinstance(memory, View):
        memory.store_where(value, chosen)
    else:
        memory._set_where(where, value, chosen)


def _mask(mask: Any, shape: Sequence[int], function: str) -> Any:
    mask = asarray(mask)
    if mask.dtype != bool:
        raise located(TypeError, f"{function}: the mask must be bools, got {mask.dtype}; write `mask != 0`")
    try:
        fits = np.broadcast_shapes(mask.shape, tuple(shape)) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise located(ValueError, f"{function}: the mask has shape {mask.shape}, the memory {tuple(shape)}")
    return jnp.broadcast_to(mask, tuple(shape))


def _atomic(
    name: str, combine: Callable[[Any, Any], Any], method: str | None, result: str
) -> Callable[..., Any]:
    def atomic(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        memory = as_memory(x_ref_or_view, name)
        part = memory.at[idx] if idx != () or memory.shape else memory.at[...]
        where = part._where
        value = jnp.broadcast_to(of_dtype(val, memory.dtype), part.shape)
        if isinstance(memory, PointerRef):
            return memory.atomic(name, where, value, None if mask is None else _mask(mask, part.shape, name))
        if mask is None and not where.arrays:
            before = part[...]
            part[...] = combine(before, value)
            return before
        chosen = jnp.ones(part.shape, bool) if mask is None else _mask(mask, part.shape, name)
        before = part.load_where(chosen, None)
        if method is not None and where.arrays:
            whole = memory._load()
            first, *rest = where.positions()
            first = jnp.where(chosen, first, np.int32(memory.shape[0]))
            update = getattr(whole.at[(first, *rest)], method)
            memory._store(update(value, mode="drop"))
        elif where.arrays:
            memory._store(_one_by_one(memory._load(), where.positions(), value, chosen, combine))
        else:
            part.store_where(combine(before, value), chosen)
        return before

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"""{result}, as one operation that other steps of the grid do not see half done.

    Args:
        x_ref_or_view: a reference, or a part of one.
        idx: which elements.
        val: the other operand.
        mask: where it is false, nothing is done.

    Returns:
        What the elements were before.

    >>> from purax.pallas import triton
    >>> triton.{name}.__name__
    {name!r}
    """
    return atomic


def _one_by_one(whole: Any, positions: Sequence[Any], value: Any, mask: Any, combine: Callable) -> Any:
    """Elements combined with values in turn, since positions may repeat."""
    shape = value.shape
    flat = [jnp.broadcast_to(p, shape).reshape(-1) for p in positions]
    values, chosen = value.reshape(-1), mask.reshape(-1)

    def body(i, array):
        at = tuple(p[i] for p in flat)
        old = array[at]
        return array.at[at].set(jnp.where(chosen[i], combine(old, values[i]), old))

    return lax.fori_loop(0, values.shape[0], body, whole)


atomic_add = _atomic("atomic_add", operator.add, "add", "Adds to elements")
atomic_max = _atomic("atomic_max", jnp.maximum, "max", "Puts the larger one of two in the place of elements")
atomic_min = _atomic("atomic_min", jnp.minimum, "min", "Puts the smaller one of two in the place of elements")
atomic_and = _atomic("atomic_and", operator.and_, None, "Combines elements bitwise, by `and`")
atomic_or = _atomic("atomic_or", operator.or_, None, "Combines elements bitwise, by `or`")
atomic_xor = _atomic("atomic_xor", operator.xor, None, "Combines elements bitwise, by exclusive `or`")
atomic_xchg = _atomic("atomic_xchg", lambda old, new: new, None, "Replaces elements")


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Writes a value where the memory holds another that it is compared with; returns what the memory held.

    Args:
        ref: a reference of one element, or a part of one.
        cmp: what the memory is compared with.
        val: what is written.

    >>> from purax.pallas import triton
    >>> triton.atomic_cas.__name__
    'atomic_cas'
    """
    memory = as_memory(ref, "atomic_cas")
    before = memory[...]
    memory[...] = jnp.where(
        before == asarray(cmp, dtype=memory.dtype), asarray(val, dtype=memory.dtype), before
    )
    return before


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Any:
    """The product of two matrices, summed in float32 (or in int32 for integers).

    Args:
        a, b: the matrices.
        trans_a, trans_b: whether they are transposed first.
        allow_tf32: whether a GPU may round float32 to 10 bits.
        precision: of the product, as in `lax.dot`.

    >>> import purax.numpy as jnp
    >>> from purax.pallas import triton
    >>> triton.dot(jnp.ones((2, 3)), jnp.ones((2, 3)), trans_b=True)[0, 0]
    Array(3., dtype=float32)
    """
    if np.ndim(a) != 2 or np.ndim(b) != 2:
        raise located(
            ValueError, f"dot needs two matrices, got shapes {np.shape(a)} and {np.shape(b)}; use `jnp.dot`"
        )
    if allow_tf32 is not None and precision is not None:
        raise located(ValueError, "dot: give `allow_tf32` or `precision`, not both")
    if allow_tf32 is not None:
        precision = lax.Precision.HIGH if allow_tf32 else lax.Precision.HIGHEST
    axes = (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ()))
    wide = jnp.int32 if jnp.issubdtype(a.dtype, jnp.integer) else jnp.float32
    if jnp.dtype(a.dtype).itemsize > 4:
        wide = a.dtype
    return lax.dot_general(a, b, axes, precision=precision, preferred_element_type=wide)


def cdiv(a: Any, b: Any) -> Any:
    """The quotient of two integers, rounded up.

    >>> from purax import pallas as pl
    >>> pl.cdiv(9, 2)
    5
    """
    if isinstance(a, (int, np.integer)) and isinstance(b, (int, np.integer)):
        return -(-a // b)
    return (a + (b - 1)) // b


def align_to(a: Any, alignment: Any) -> Any:
    """The next multiple of a number.

    >>> from purax import pallas as pl
    >>> pl.align_to(5, 4)
    8
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The next power of two.

    >>> from purax import pallas as pl
    >>> pl.next_power_of_2(5), pl.next_power_of_2(8)
    (8, 8)
    """
    if x < 0:
        raise located(ValueError, f"next_power_of_2 needs a number that is not negative, got {x}")
    return 1 if x == 0 else 2 ** (int(x) - 1).bit_length()


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """For each dimension how many elements apart its neighbours are, in row-major order.

    >>> from purax import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(int(np.prod(shape[i + 1 :], dtype=int)) for i in range(len(shape)))


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """`x`, which is known to be a multiple of each of `values`: a hint for compilers.

    >>> from purax import pallas as pl
    >>> pl.multiple_of(16, 8)
    16
    """
    divisors = [values] if isinstance(values, (int, np.integer)) else list(values)
    if isinstance(x, (int, np.integer)):
        for value in divisors:
            if x % value:
                raise located(ValueError, f"multiple_of: {x} is not a multiple of {value}")
    return x


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Any:
    """`jnp.broadcast_to`.

    >>> from purax import pallas as pl
    >>> pl.broadcast_to(1.0, (2,))
    Array([1., 1.], dtype=float32, weak_type=True)
    """
    return jnp.broadcast_to(a, tuple(shape))


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """1 / x.

    Args:
        x: the array.
        approx: whether an approximation will do; the CPU has none.
        full_range: whether infinities, NaN and the smallest numbers matter.

    >>> from purax import pallas as pl
    >>> pl.reciprocal(4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """
    if approx and not full_range:
        raise located(ValueError, "reciprocal: give `approx=True` or `full_range=False`, not both")
    return jnp.reciprocal(x)


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array whose elements are not defined.

    >>> from purax import pallas as pl
    >>> pl.empty((2,), "float32").shape
    (2,)
    """
    return lax.empty(shape, dtype, out_sharding=out_sharding)


def empty_like(x: Any) -> Any:
    """A tree of arrays whose elements are not defined, of the shapes and dtypes of another tree.

    >>> import purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> pl.empty_like({"a": jnp.ones(3)})["a"].shape
    (3,)
    """
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [lax.empty(y.shape, y.dtype) for y in leaves])


def empty_ref_like(x: Any) -> Any:
    """A reference for arrays of the shape and dtype of another.

    >>> import purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> pl.empty_ref_like(jnp.ones(3)).shape
    (3,)
    """
    return KernelRef(lax.empty(x.shape, x.dtype), "a reference", getattr(x, "memory_space", None))


def select_ref(idx: Any, *refs: Any) -> Any:
    """One of several references, chosen at run time: reading it reads the chosen one, and so does writing.

    Args:
        idx: which.
        *refs: references, or parts of them, of one shape and dtype.

    >>> from purax import pallas as pl
    >>> pl.select_ref.__name__
    'select_ref'
    """
    from_refs = [as_memory(ref, "select_ref") for ref in refs]
    first = from_refs[0]
    for ref in from_refs[1:]:
        if ref.shape != first.shape or ref.dtype != first.dtype:
            raise located(
                ValueError,
                f"select_ref: the references must have one shape and dtype, got {first.shape} {first.dtype} and "
                f"{ref.shape} {ref.dtype}",
            )
    return _Selected(idx, from_refs)


class _Selected(View):
    """One of several memories."""

    __slots__ = ("_choices", "_number")

    def __init__(self, number: Any, choices: list[Any]):
        super().__init__(choices[0], choices[0].shape, choices[0].dtype, None, None)
        self._number, self._choices = number, choices

    def _load(self) -> Any:
        values = [ref[...] for ref in self._choices]
        chosen = values[0]
        for i, value in enumerate(values[1:], 1):
            chosen = jnp.where(self._number == i, value, chosen)
        return chosen

    def _store(self, array: Any) -> None:
        for i, ref in enumerate(self._choices):
            is_chosen = self._number <= 0 if i == 0 else self._number == i
            ref[...] = jnp.where(is_chosen, array, ref[...])


def debug_print(fmt: str, *args: Any) -> None:
    """Prints values while a kernel runs.

    Args:
        fmt: the text, with `{}` where values go; without any, the values follow it.
        *args: the values.

    >>> from purax import pallas as pl
    >>> pl.debug_print("{} is the value", 3)
    3 is the value
    """
    values = [x[...] if is_reference(x) else x for x in args]
    if values and "{" not in fmt:
        fmt = fmt + " {}" * len(values)
    debug.print(fmt, *values)


def debug_check(condition: Any, message: str) -> None:
    """Raises an error if a condition does not hold, where `enable_debug_checks` is set.

    Args:
        condition: a bool.
        message: of the error.

    >>> from purax import pallas as pl
    >>> pl.debug_check(False, "not checked")
    """
    if not settings.enable_debug_checks.value:
        return
    location = source.user_location()

    def check(holds: Any) -> None:
        if not holds:
            raise source.located(AssertionError, message, at=location)

    debug.callback(check, condition)


def delay(nanos: Any) -> None:
    """Waits for some nanoseconds on a GPU; results do not depend on it, and the CPU does not wait.

    >>> from purax import pallas as pl
    >>> pl.delay(10)
    """


def semaphore_signal(
    sem_or_view: Any,
    inc: Any = 1,
    *,
    device_id: Any = None,
    device_id_type: Any = None,
    core_index: Any = None,
) -> None:
    """Adds to a semaphore.

    Args:
        sem_or_view: the semaphore.
        inc: how much.
        device_id, device_id_type: of another device, which the CPU does not reach.
        core_index: of another core; there is one.

    >>> from purax import pallas as pl
    >>> pl.semaphore_signal.__name__
    'semaphore_signal'
    """
    if device_id is not None:
        raise located(
            NotImplementedError,
            "semaphore_signal: kernels that run on the CPU do not reach other devices; leave `device_id` out and "
            "communicate around the kernel, with `lax.ppermute` in a `shard_map`",
        )
    memory = as_memory(sem_or_view, "semaphore_signal")
    memory[...] = memory[...] + jnp.asarray(inc, np.int32)


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Waits until a semaphore has a value, and takes the value from it.

    Args:
        sem_or_view: the semaphore.
        value: what is waited for. Steps run in turn on the CPU, so it was signalled before.
        decrement: whether the value is taken from it.

    >>> from purax import pallas as pl
    >>> pl.semaphore_wait.__name__
    'semaphore_wait'
    """
    memory = as_memory(sem_or_view, "semaphore_wait")
    if decrement:
        memory[...] = memory[...] - jnp.asarray(value, np.int32)


def semaphore_read(sem_or_view: Any) -> Any:
    """What a semaphore counts now.

    >>> from purax import pallas as pl
    >>> pl.semaphore_read.__name__
    'semaphore_read'
    """
    return as_memory(sem_or_view, "semaphore_read")[...]
