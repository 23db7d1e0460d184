"""Containers that `vmap` maps over though they are no pytrees: libraries say how one is cut into elements.

`to_element(slice_of, axis_size, container, spec)` makes the element that the function sees, calling `slice_of(array,
axis)` for each array; `from_element(batch_of, axis_size, element, spec)` makes a container of a result, calling
`batch_of(axis_size, array, axis)`. The spec is what stands in `in_axes` or `out_axes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from purax.core.source import located
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten


class Container(NamedTuple):
    """What is known of a class of containers."""

    spec_type: type
    to_element: Callable[..., Any]
    from_element: Callable[..., Any]


containers: dict[type, Container] = {}


def register(data_type: type, spec_type: type, to_element: Callable, from_element: Callable) -> None:
    """Lets `vmap` map over containers of a class.

    Args:
        data_type: their class.
        spec_type: the class of what says, in `in_axes` and `out_axes`, how one is batched.
        to_element: makes an element of a container.
        from_element: makes a container of an element.
    """
    if data_type in containers:
        raise located(
            ValueError,
            f"{data_type.__name__} is registered already; unregister_vmappable({data_type.__name__}) first",
        )
    containers[data_type] = Container(spec_type, to_element, from_element)


def unregister(data_type: type) -> None:
    """Undoes `register`."""
    del containers[data_type]


def is_container(x: Any) -> bool:
    """Whether an argument is such a container."""
    return type(x) in containers


class Taken:
    """A container among the arguments of `vmap`: its arrays and their axes, and the element made of slices of them."""

    def __init__(self, container: Any, spec: Any, size: int | None):
        self._container, self._spec, self._size = container, spec, size
        self.arrays: list[Any] = []
        self.axes: list[Any] = []

        def note(array: Any, axis: Any) -> Any:
            self.arrays.append(array)
            self.axes.append(axis)
            return array

        containers[type(container)].to_element(note, lambda: size, container, spec)

    def element(self, slices: list[Any]) -> Any:
        """The element, of slices of the arrays in the order in which they were asked for."""
        rest = iter(slices)
        rule = containers[type(self._container)].to_element
        return rule(lambda array, axis: next(rest), lambda: self._size, self._container, self._spec)


class Given:
    """A container among the results: its arrays as the function returned them, and the container of their batches."""

    def __init__(self, element: Any, spec: Any, size: int):
        self._element, self._spec = element, spec
        self.arrays: list[Any] = []
        self.axes: list[Any] = []

        def note(size: Any, array: Any, axis: Any) -> Any:
            self.arrays.append(array)
            self.axes.append(axis)
            return array

        containers[type(element)].from_element(note, size, element, spec)

    def container(self, size: int, batches: list[Any]) -> Any:
        """The container, of batches of the arrays."""
        rest = iter(batches)
        rule = containers[type(self._element)].from_element
        return rule(lambda size, array, axis: next(rest), size, self._element, self._spec)


def vectorize(
    vmap: Callable,
    fun: Callable,
    in_axes: Any,
    out_axes: Any,
    args: Any,
    kwargs: Any,
    options: dict[str, Any],
) -> Any:
    """`vmap` of a function of which some arguments or results are containers.

    Args:
        vmap: for functions of arrays.
        fun: the function.
        in_axes: as in `vmap`, with specs for containers.
        out_axes: likewise.
        args: the arguments.
        kwargs: the keyword arguments.
        options: of `vmap`.
    """
    leaves, tree = tree_flatten((args, kwargs), is_leaf=is_container)
    kinds = tuple({entry.spec_type for entry in containers.values()})

    def is_leaf(x: Any) -> bool:
        return x is None or is_container(x) or isinstance(x, kinds)

    prefix = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    specs = [*broadcast_prefix(prefix, tuple(args), is_leaf=is_leaf)]
    specs += [0] * (len(leaves) - len(specs))
    pieces = [
        Taken(x, spec, options.get("axis_size")) if is_container(x) and spec is not None else None
        for x, spec in zip(leaves, specs, strict=True)
    ]
    arrays, axes = [], []
    for x, spec, piece in zip(leaves, specs, pieces, strict=True):
        arrays += [x] if piece is None else piece.arrays
        axes += [spec] if piece is None else piece.axes
    given: list[Any] = []
    result_axes: list[Any] = []  # which `vmap` reads when the function has returned
    sizes = [x.shape[a] for x, a in zip(arrays, axes, strict=True) if a is not None and hasattr(x, "shape")]
    count = options.get("axis_size") or (sizes[0] if sizes else 0)
    out_tree: Any = None

    def flat(*slices: Any) -> list[Any]:
        nonlocal out_tree
        rest = iter(slices)
        own = [
            next(rest) if piece is None else piece.element([next(rest) for _ in piece.arrays])
            for piece in pieces
        ]
        new_args, new_kwargs = tree_unflatten(tree, own)
        results = fun(*new_args, **new_kwargs)
        out, out_tree = tree_flatten(results, is_leaf=is_container)
        wanted = broadcast_prefix(out_axes, results, is_leaf=is_leaf)
        given[:] = [
            Given(y, spec, count) if is_container(y) else None for y, spec in zip(out, wanted, strict=True)
        ]
        found: list[Any] = []
        result_axes.clear()
        for y, spec, piece in zip(out, wanted, given, strict=True):
            found += [y] if piece is None else piece.arrays
            result_axes.extend([spec] if piece is None else piece.axes)
        return found

    flat.of_slices = True  # type: ignore[attr-defined]
    batches = iter(vmap(flat, tuple(axes), result_axes, **options)(*arrays))
    own = [
        next(batches) if piece is None else piece.container(count, [next(batches) for _ in piece.arrays])
        for piece in given
    ]
    return tree_unflatten(out_tree, own)
