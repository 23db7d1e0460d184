"""`ffi_call`: a kernel of the user's as an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from purax.callbacks.callback import batch_in_front, with_axis, with_batch
from purax.callbacks.pure import VMAP_METHODS
from purax.control_flow.branches import cond
from purax.control_flow.maps import map as map_in_turn
from purax.core import dtypes, effects, source
from purax.core.avals import ShapedArray, aval_of
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.errors import shown
from purax.execution.compiled_program import run
from purax.execution.eager import as_array
from purax.ffi.attributes import dictionary_text, freeze, quoted
from purax.ffi.layouts import layouts_text, order_of, orders_of
from purax.interpreters.arguments import to_array
from purax.interpreters.staging import stage
from purax.primitives.shape.broadcasting import batch_size, full
from purax.primitives.shape.reshaping import stack
from purax.xla.stablehlo import output_aliases

_PURE: frozenset = frozenset()
_EFFECT = frozenset((effects.io,))
_API_VERSIONS = (1, 2, 3, 4)


class FfiCall(Primitive):
    """Calls the kernel that is registered as `target_name`.

    Params:
        attributes: pairs of a name and the text of an attribute.
        result_avals: the types of the results.
        has_side_effect: whether it is called even if nobody needs its results.
        vmap_method: how it is vectorized.
        input_layouts, output_layouts: for each array its axes, from the slowest to the fastest.
        input_output_aliases: pairs of an operand and the result that takes its memory.
        custom_call_api_version: 4 for XLA's foreign function interface, less for the custom calls before it.
        legacy_backend_config: what those are told.
    """

    name = "ffi_call"
    multiple_results = True
    runs_itself = True
    not_lowered = ("vmap_method",)

    def infer(self, *avals, result_avals, **params):
        return list(result_avals)

    def effects(self, *, has_side_effect, **params):
        return _EFFECT if has_side_effect else _PURE

    def run(self, *operands, **params):
        arrays = [as_array(x, x.aval) for x in operands]
        name = f"ffi_call_{params['target_name']}"
        return run(stage(lambda *xs: self.bind(*xs, **params), [x.aval for x in arrays], name), arrays)

    def lower(
        self,
        builder,
        *operands,
        target_name,
        attributes,
        result_avals,
        has_side_effect,
        vmap_method,
        input_layouts,
        output_layouts,
        input_output_aliases,
        custom_call_api_version,
        legacy_backend_config,
    ):
        if has_side_effect and builder.module.mesh is not None and not builder.manual:
            raise located(
                NotImplementedError,
                f"ffi_call of {shown(target_name)} with has_side_effect=True "
                f"in a program over several devices: XLA "
                "does not say which of them calls it. Call it in a "
                "`purax.shard_map`, where each device does",
            )
        builder.module.targets.setdefault(target_name, source.user_location())
        text = layouts_text(input_layouts, output_layouts)
        if input_output_aliases:
            pairs = [(result, operand) for operand, result in input_output_aliases]
            text += f", {output_aliases(pairs, len(result_avals))}"
        is_typed = custom_call_api_version == 4
        return builder.custom_call(
            quoted(target_name),
            operands,
            result_avals,
            backend_config=dictionary_text(attributes) if is_typed else quoted(legacy_backend_config or ""),
            has_side_effect=has_side_effect,
            api_version=custom_call_api_version,
            attributes=text,
        )

    def jvp(self, primals, tangents, *, target_name, **params):
        raise source.located(_no_derivative, target_name)

    def transpose(self, cotangents, *operands, target_name, **params):
        raise source.located(_no_derivative, target_name)

    def guarded(self, condition, operands, *, result_avals, **params):
        def call(*arrays):
            return self.bind(*arrays, result_avals=result_avals, **params)

        def skip(*arrays):
            return [full(aval.shape, 0, aval.dtype) for aval in result_avals]

        return cond(condition, call, skip, *operands)

    def batch(self, operands, batch_axes, **params):
        method = params["vmap_method"]
        if method is None:
            raise located(
                NotImplementedError,
                f"vmap of ffi_call of {params['target_name']!r} needs to "
                f"know how the kernel takes a batch: give "
                f"vmap_method one of {', '.join(map(repr, VMAP_METHODS))}. "
                f"'sequential' calls it once per example, "
                "'broadcast_all' calls it once with all arrays batched in front.",
            )
        moved = batch_in_front(operands, batch_axes)
        batched = [axis is not None for axis in batch_axes]
        size = batch_size(operands, batch_axes)
        count = len(params["result_avals"])
        if method.startswith("sequential"):
            return self._one_by_one(moved, batched, size, params), [0] * count
        aliased = {operand for operand, _ in params["input_output_aliases"]}
        for i, x in enumerate(moved):
            if not batched[i] and (method != "legacy_vectorized" or i in aliased):
                # A result that takes the memory of an operand has its size.
                moved[i] = with_axis(x, size if method == "broadcast_all" or i in aliased else 1)
                batched[i] = True
        params["input_layouts"] = tuple(
            _behind_batch(order) if flag else order
            for order, flag in zip(params["input_layouts"], batched, strict=True)
        )
        params["output_layouts"] = tuple(map(_behind_batch, params["output_layouts"]))
        params["result_avals"] = with_batch(params["result_avals"], size)
        return self.bind(*moved, **params), [0] * count

    def _one_by_one(self, operands, batched, size, params):
        """The results for one example after the other, stacked: in a loop, or written out."""
        fixed = [x for x, flag in zip(operands, batched, strict=True) if not flag]

        def one(parts):
            given, shared = iter(parts), iter(fixed)
            return self.bind(*(next(given if flag else shared) for flag in batched), **params)

        rows = [x for x, flag in zip(operands, batched, strict=True) if flag]
        if params["vmap_method"] == "sequential" or size == 0:
            return map_in_turn(one, rows)
        results = [one([x[i] for x in rows]) for i in range(size)]
        return [stack(parts, 0) for parts in zip(*results, strict=True)]


ffi_call_p = FfiCall()


def _behind_batch(order: tuple[int, ...]) -> tuple[int, ...]:
    return (0, *(axis + 1 for axis in order))


def _no_derivative(target_name: str) -> ValueError:
    return ValueError(
        f"The FFI call to `{target_name}` cannot be differentiated: what "
        f"the kernel computes is not known. Give the "
        "function that calls it a derivative with `purax.custom_jvp` or `purax.custom_vjp`."
    )


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a kernel.

    Args:
        target_name: the name that the kernel was registered by, with `register_ffi_target`.
        result_shape_dtypes: the type of the result, or a list or tuple of types: objects with a shape and a dtype.
        has_side_effect: whether the kernel is called even if nobody needs its results.
        vmap_method: what `vmap` makes of it, as in `pure_callback`: "sequential" and "sequential_unrolled" call it for
            one example after the other, in a loop or written out; "expand_dims" and "broadcast_all" call it once with
            a batch axis in front of every argument, which for arguments without a batch has size 1, or the size of the
            batch; "legacy_vectorized" leaves arguments without a batch as they are; None refuses.
        input_layouts: for each argument None for rows, a `Layout`, or its axes from the slowest to the fastest; XLA
            transposes arrays that lie otherwise.
        output_layouts: the same for the result, or for each of several.
        input_output_aliases: for some arguments, the number of the result that takes their memory. An argument that is
            needed later is copied first.
        custom_call_api_version: 4 for XLA's foreign function interface, 1 to 3 for the custom calls before it.
        legacy_backend_config: the string that those are given.

    Returns:
        A function of arrays, and of keyword arguments: the attributes of the kernel. These are bools, numbers (of 64
        bits; those of NumPy have their dtype), strings, dtypes, arrays of NumPy, and tuples and dicts of these.

    >>> import purax as px, purax.numpy as jnp
    >>> scale = px.ffi.ffi_call("scale", px.ShapeDtypeStruct((3,), jnp.float32), vmap_method="broadcast_all")
    >>> px.make_jaxpr(lambda x: scale(x, factor=2.0))(jnp.ones(3)).out_avals[0].str_short()
    'f32[3]'
    """
    if not isinstance(target_name, str) or not target_name:
        raise located(TypeError, f"ffi_call needs the name of a kernel, a string, not {shown(target_name)}")
    what = f"ffi_call of {shown(target_name)}"
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise located(
            ValueError,
            f"{what}: vmap_method must be one of "
            f"{', '.join(map(repr, VMAP_METHODS))} or None, got {shown(vmap_method)}",
        )
    if custom_call_api_version not in _API_VERSIONS:
        raise located(
            ValueError,
            f"{what}: custom_call_api_version must be one of "
            f"{_API_VERSIONS}, got {shown(custom_call_api_version)}",
        )
    if legacy_backend_config is not None and custom_call_api_version == 4:
        raise located(
            ValueError,
            f"{what}: legacy_backend_config needs "
            f"custom_call_api_version < 4, got 4; the FFI takes keyword "
            "arguments of the call instead",
        )
    is_sequence = isinstance(result_shape_dtypes, list | tuple)
    kind = type(result_shape_dtypes) if is_sequence else tuple
    avals = _result_types(result_shape_dtypes if is_sequence else (result_shape_dtypes,), what)
    if is_sequence:
        out_orders = orders_of(output_layouts, avals, f"{what}: output_layouts")
    else:
        out_orders = (order_of(output_layouts, avals[0], f"{what}: output_layouts"),)

    def call(*args: Any, **kwargs: Any) -> Any:
        operands = [to_array(x) for x in args]
        types = [aval_of(x) for x in operands]
        for i, aval in enumerate(types):
            if dtypes.is_extended(aval.dtype):
                raise located(
                    TypeError,
                    f"{what}: argument {i} is {aval.str_short()}; kernels take `purax.random.key_data(key)`",
                )
        if kwargs and custom_call_api_version < 4:
            raise located(
                ValueError,
                f"{what}: attributes need custom_call_api_version=4, got "
                f"{custom_call_api_version}; give older "
                "kernels legacy_backend_config instead",
            )
        results = ffi_call_p.bind(
            *operands,
            target_name=target_name,
            attributes=freeze(kwargs, what),
            result_avals=avals,
            has_side_effect=bool(has_side_effect),
            vmap_method=vmap_method,
            input_layouts=orders_of(input_layouts, types, f"{what}: input_layouts"),
            output_layouts=out_orders,
            input_output_aliases=_aliases(input_output_aliases, types, avals, what),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
        )
        return kind(results) if is_sequence else results[0]

    return call


def _result_types(given: Sequence[Any], what: str) -> tuple[ShapedArray, ...]:
    avals = []
    for position, one in enumerate(given):
        if not hasattr(one, "shape") or not hasattr(one, "dtype"):
            raise located(
                ValueError,
                f"{what}: all elements of result_shape_dtypes must have a shape and a dtype, as "
                f"`purax.ShapeDtypeStruct((3,), jnp.float32)` has; got {shown(one)} at position {position}",
            )
        # A kernel writes what it writes: 64 bits are not made 32, whatever `enable_x64` says.
        avals.append(ShapedArray(tuple(one.shape), dtypes.as_exact_dtype(one.dtype)))
    return tuple(avals)


def _aliases(
    given: Any, inputs: Sequence[ShapedArray], outputs: Sequence[ShapedArray], what: str
) -> tuple[tuple[int, int], ...]:
    if given is None:
        return ()
    what = f"{what}: input_output_aliases"
    if not isinstance(given, Mapping):
        raise located(
            TypeError, f"{what} must be a dict of numbers of arguments and of results, got {shown(given)}"
        )
    for i, o in given.items():
        for number, avals, side in ((i, inputs, "input"), (o, outputs, "output")):
            if not isinstance(number, int) or not 0 <= number < len(avals):
                raise located(
                    ValueError,
                    f"{what} has the entry {i}: {o}, whose {side} index is outside of [0, {len(avals)})",
                )
        if (inputs[i].shape, inputs[i].dtype) != (outputs[o].shape, outputs[o].dtype):
            raise located(
                ValueError,
                f"{what} has the entry {i}: {o}, but argument {i} is "
                f"{inputs[i].str_short()} and result {o} is "
                f"{outputs[o].str_short()}; only arrays of one shape and dtype can share memory",
            )
    if len(set(given.values())) < len(given):
        raise located(ValueError, f"{what} gives a result the memory of several arguments: {given}")
    return tuple(sorted(given.items()))
