"""Lowerings of primitives of third parties that are a call of a kernel, written with MLIR's bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from purax.core import source
from purax.core.source import located
from purax.errors import shown
from purax.ffi.attributes import attribute_text, dictionary_text, quoted
from purax.ffi.layouts import layouts_text, orders_of
from purax.xla import jaxlib_api
from purax.xla.layout import Layout
from purax.xla.stablehlo import output_aliases, tensor_type

_OPTIONS = ("api_version", "has_side_effect", "operand_output_aliases")


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A function that emits a call of a kernel as an operation of MLIR.

    Args:
        call_target_name: the name that the kernel was registered by.
        operand_layouts: for each operand a `Layout`, its axes from the fastest to the slowest, or None for rows.
        result_layouts: the same for the results.
        backend_config: attributes of the kernel, or the string that a kernel of an older kind is given.
        skip_ffi_layout_processing: accepted, without effect: layouts are always those above.
        lowering_args: `api_version`, `has_side_effect`, `operand_output_aliases`.

    Returns:
        A function of a lowering context, operands, and attributes as keywords, which returns the operation.

    >>> import purax as px
    >>> callable(px.ffi.build_ffi_lowering_function("kernel"))
    True
    """
    what = f"the lowering of {shown(call_target_name)}"
    if unknown := set(lowering_args) - set(_OPTIONS):
        raise located(
            TypeError, f"{what} takes no argument {min(unknown)!r}; there are {', '.join(_OPTIONS)}"
        )
    version = lowering_args.get("api_version", 4)
    aliases = lowering_args.get("operand_output_aliases") or {}

    def emit(ctx: Any, *operands: Any, **params: Any) -> Any:
        ir = jaxlib_api.mlir()
        if version == 4:
            if isinstance(backend_config, str):
                raise located(
                    ValueError,
                    f"{what}: backend_config must be a dict of attributes, got {shown(backend_config)}",
                )
            given = {**(backend_config or {}), **params}
            pairs = [
                (
                    name,
                    str(value)
                    if isinstance(value, ir.Attribute)
                    else attribute_text(value, f"{what}: {name!r}"),
                )
                for name, value in sorted(given.items())
            ]
            config = f"{{{dictionary_text(pairs)}}}"
        else:
            if params:
                raise located(ValueError, f"{what}: attributes need api_version=4, got {version}")
            config = f'"{quoted(str(backend_config or ""))}"'
        ins = orders_of(_slowest_first(operand_layouts), ctx.avals_in, f"{what}: operand_layouts")
        outs = orders_of(_slowest_first(result_layouts), ctx.avals_out, f"{what}: result_layouts")
        text = (
            f'call_target_name = "{quoted(call_target_name)}", api_version = {version} : i32, '
            f"backend_config = {config}, has_side_effect = "
            f"{str(bool(lowering_args.get('has_side_effect'))).lower()}, " + layouts_text(ins, outs)
        )
        if aliases:
            text += f", {output_aliases([(o, i) for i, o in aliases.items()], len(ctx.avals_out))}"
        attributes = ir.DictAttr.parse(f"{{{text}}}")
        ctx.module_context.builder.module.targets.setdefault(call_target_name, source.user_location())
        return ir.Operation.create(
            "stablehlo.custom_call",
            results=[ir.Type.parse(tensor_type(aval)) for aval in ctx.avals_out],
            operands=list(operands),
            attributes={named.name: named.attr for named in attributes},
        )

    return emit


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A lowering rule, for `jax.interpreters.mlir.register_lowering`, that is a call of a kernel.

    Args:
        call_target_name: the name that the kernel was registered by.
        operand_layouts: for each operand a `Layout`, its axes from the fastest to the slowest, or None for rows.
        result_layouts: the same for the results.
        backend_config: attributes of the kernel, or the string that a kernel of an older kind is given.
        skip_ffi_layout_processing: accepted, without effect: layouts are always those above.
        lowering_args: `api_version`, `has_side_effect`, `operand_output_aliases`.

    Returns:
        The rule; parameters of the primitive become attributes.

    >>> import purax as px
    >>> callable(px.ffi.ffi_lowering("kernel"))
    True
    """
    emit = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: Any, *operands: Any, **params: Any) -> list[Any]:
        return list(emit(ctx, *operands, **params).results)

    return rule


def _slowest_first(layouts: Sequence[Any] | None) -> Sequence[Any] | None:
    if layouts is None:
        return None
    return [x if x is None or isinstance(x, Layout) else tuple(x)[::-1] for x in layouts]
