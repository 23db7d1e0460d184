"""Einstein summation: `einsum` and `einsum_path`.

A call is planned once per subscripts and shapes: a list of steps, each of which contracts two operands (or reduces
one) by one `dot_general`. The order of steps for three and more operands is opt_einsum's.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.limits import shallow
from purax.core.source import located
from purax.errors import shown
from purax.numpy._linalg.matrices import diagonal
from purax.numpy._promotion import as_array, common_dtype, convert, refuse_out
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.elementwise.logic import and_
from purax.primitives.products.contraction import canonical_precision, dot_general_p
from purax.primitives.reductions.reduction import reduce_or
from purax.primitives.shape.broadcasting import broadcast_in_dim, reduce_sum, transpose
from purax.primitives.shape.reshaping import squeeze
from purax.sharding.constraints import freely
from purax.typing import DTypeLike

Labels = tuple[str, ...]


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: str | bool | list[tuple[int, ...]] = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sums of products of arrays, with the axes named by letters.

    Args:
        subscripts: the names of the axes of each operand and, after "->", of the result. A name that is missing in the
            result is summed over, a name that stands twice in an operand means its diagonal, "..." stands for all other
            axes. Without "->" the result has the names that occur once, in the order of the alphabet. In the other
            form, arrays alternate with lists of integers: `einsum(x, [0, 1], y, [1, 2], [0, 2])`.
        operands: the arrays.
        out: not supported.
        optimize: in which order three or more operands are multiplied: "auto", "optimal", "greedy" and other names of
            opt_einsum, True, False (from left to right), or a list of positions as `einsum_path` gives it.
        precision: see `lax.Precision`.
        preferred_element_type: the dtype of the result.
        out_sharding: how the result is sharded over devices.

    Returns:
        The sums.

    >>> import purax.numpy as jnp
    >>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    if out is not None:
        refuse_out("einsum", out)
    if subscripts.__class__ is not str:
        subscripts, operands = _from_interleaved(subscripts, operands)
    if out_sharding is not None:
        options = {"optimize": optimize, "precision": precision}
        rest = options | {"preferred_element_type": preferred_element_type, "_dot_general": _dot_general}
        return freely(functools.partial(einsum, subscripts, **rest), out_sharding, *operands)
    how: Any = optimize
    arrays = [as_array(x, "einsum", i) for i, x in enumerate(operands)]
    shapes = tuple([x.aval.shape for x in arrays])
    if how.__class__ is list:
        how = tuple([tuple(step) if isinstance(step, (list, tuple)) else step for step in how])
    try:
        steps = _plan(subscripts, shapes, shallow(how))
    except ValueError as error:
        raise source.located(ValueError, *error.args) from None
    dtype = arrays[0].aval.dtype
    weak = arrays[0].aval.weak_type
    if any([x.aval.dtype is not dtype or x.aval.weak_type is not weak for x in arrays[1:]]):
        dtype, weak = common_dtype(arrays) if len(arrays) > 1 else (dtype, weak)
        arrays = [convert(x, dtype, weak) for x in arrays]
    if preferred_element_type is not None:
        preferred_element_type = dtypes.as_dtype(preferred_element_type, "einsum: preferred_element_type")
    precision = canonical_precision(precision)
    for step in steps:
        step.apply(arrays, precision, preferred_element_type)
    result = arrays[0]
    if preferred_element_type is not None:
        result = convert_element_type(result, preferred_element_type, result.aval.weak_type)
    return result


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: str | bool | list[tuple[int, ...]] = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` multiplies operands, without computing anything.

    Args:
        subscripts, operands: as those of `einsum`; operands need only have shapes.
        optimize: as that of `einsum`.

    Returns:
        A list of positions of operands that are multiplied with each other, each product being put at the end; and a
        report on its cost, to print.

    >>> import purax.numpy as jnp
    >>> x, y, z = jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones((4, 5))
    >>> jnp.einsum_path("ij,jk,kl->il", x, y, z)[0]
    [(0, 1), (0, 1)]
    """
    import opt_einsum

    if subscripts.__class__ is not str:
        subscripts, operands = _from_interleaved(subscripts, operands)
    if isinstance(optimize, bool):
        optimize = "optimal" if optimize else [tuple(range(len(operands)))]
    shapes = [tuple(getattr(x, "shape", ())) for x in operands]
    return opt_einsum.contract_path(subscripts, *shapes, shapes=True, optimize=optimize)


# --- subscripts


def _from_interleaved(first: Any, rest: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands from arrays that alternate with lists of integers."""
    items = [first, *rest]
    operands, names = items[0::2], items[1::2]
    output = None
    if len(operands) > len(names):
        output = operands.pop()
    if not names or any(not isinstance(one, (list, tuple)) for one in names):
        raise located(
            TypeError,
            f"einsum needs subscripts first, such as 'ij,jk->ik', or arrays that alternate with lists of integers; "
            f"got {type(first).__name__} first",
        )
    lists = [*names, *([output] if output is not None else [])]
    found = sorted({label for one in lists for label in one if label is not Ellipsis})
    letters = {label: _letter(i) for i, label in enumerate(found)}
    parts = ["".join("..." if label is Ellipsis else letters[label] for label in one) for one in lists]
    inputs = ",".join(parts[: len(names)])
    return (inputs if output is None else f"{inputs}->{parts[-1]}"), tuple(operands)


def _letter(i: int) -> str:
    """The i-th of as many distinct names as one likes, in increasing order."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return alphabet[i] if i < 52 else chr(i + 140)


def _parse(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> tuple[list[Labels], Labels]:
    """The names of the axes of operands and of the result; axes under "..." are named ".0", ".1", … from the right."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"einsum: number of einsum subscripts, {len(terms)}, must be equal to the number of operands, "
            f"{len(shapes)}: {shown(subscripts)}"
        )
    labels = [_labels(terms[i], len(shape), i, subscripts) for i, shape in enumerate(shapes)]
    hidden = max((sum(_is_hidden(label) for label in one) for one in labels), default=0)
    ellipsis = tuple(f".{i}" for i in reversed(range(hidden)))
    if arrow:
        before, dots, after = output.partition("...")
        if hidden and not dots:
            result = (*output,)
        else:
            result = (*before, *(ellipsis if dots else ()), *after)
        if "." in before + after:
            raise ValueError(
                f"einsum: invalid ellipsis in the output of {shown(subscripts)}; write '...' once"
            )
    else:
        counts: dict[str, int] = {}
        for label in (label for one in labels for label in one):
            counts[label] = counts.get(label, 0) + 1
        result = (
            *ellipsis,
            *sorted(label for label, n in counts.items() if n == 1 and not _is_hidden(label)),
        )
    known = {label for one in labels for label in one}
    for label in result:
        if label not in known:
            raise ValueError(
                f"einsum: output character {shown(label)} did not appear in the input of {shown(subscripts)}"
            )
        if result.count(label) > 1:
            raise ValueError(
                f"einsum: output character {shown(label)} appeared more than once in the output of {shown(subscripts)}"
            )
    return labels, result


def _labels(term: str, ndim: int, position: int, subscripts: str) -> Labels:
    before, dots, after = term.partition("...")
    names = (*before, *after)
    bad = [c for c in names if not c.isalnum() and ord(c) < 128]
    if bad:
        raise ValueError(
            f"einsum: character {bad[0]!r} in {shown(subscripts)} is not a valid name of an axis; use letters, digits, "
            "',', '->' and '...'"
        )
    hidden = ndim - len(names)
    if hidden < 0 or (hidden and not dots):
        raise ValueError(
            f"einsum: subscript {shown(term)} names {len(names)} axes, not the correct number of indices for operand "
            f"{position}, which has {ndim} axes"
        )
    return (*before, *(f".{i}" for i in reversed(range(hidden))), *after)


def _is_hidden(label: str) -> bool:
    """Whether a label is that of an axis under "..."; digits are names like others."""
    return label[0] == "."


# --- planning


class _One(NamedTuple):
    """Turns operand `position`, in place, into one with other axes: squeezed, diagonals taken, summed, reordered."""

    position: int
    squeezed: tuple[int, ...]
    diagonals: tuple[tuple[int, int], ...]
    summed: tuple[int, ...]
    order: tuple[int, ...]

    def apply(self, arrays: list[Any], precision: Any, preferred: Any) -> None:
        x = squeeze(arrays[self.position], self.squeezed)
        for first, second in self.diagonals:
            x = diagonal(x, 0, first, second)
        if self.summed:
            if preferred is not None:
                x = convert_element_type(x, preferred, x.aval.weak_type)
            x = (reduce_or if x.dtype == bool else reduce_sum)(x, self.summed)
        arrays[self.position] = transpose(x, self.order)


class _Contract(NamedTuple):
    """Replaces operands `first` and `second` by their product, at the end."""

    first: int
    second: int
    numbers: tuple
    order: tuple[int, ...]

    def apply(self, arrays: list[Any], precision: Any, preferred: Any) -> None:
        x, y = arrays[self.first], arrays[self.second]
        result = dot_general_p.bind(
            x, y, dimension_numbers=self.numbers, precision=precision, preferred_element_type=preferred
        )
        _replace(
            arrays, self.first, self.second, result if self.order == () else transpose(result, self.order)
        )


class _Multiply(NamedTuple):
    """Replaces two operands by their product on each element, where nothing is summed."""

    first: int
    second: int
    shape: tuple[int, ...]
    orders: tuple[tuple[int, ...], tuple[int, ...]]
    places: tuple[tuple[int, ...], tuple[int, ...]]

    def apply(self, arrays: list[Any], precision: Any, preferred: Any) -> None:
        pair = []
        for position, order, places in zip((self.first, self.second), self.orders, self.places, strict=True):
            x = transpose(arrays[position], order)
            if preferred is not None:
                x = convert_element_type(x, preferred, x.aval.weak_type)
            pair.append(x if not x.ndim and self.shape else broadcast_in_dim(x, self.shape, places))
        _replace(arrays, self.first, self.second, (and_ if pair[0].dtype == bool else mul)(*pair))


def _replace(arrays: list[Any], first: int, second: int, result: Any) -> None:
    for position in sorted((first, second), reverse=True):
        del arrays[position]
    arrays.append(result)


@functools.lru_cache(4096)
def _plan(subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list[Any]:
    labels, output = _parse(subscripts, shapes)
    sizes = _sizes(labels, shapes, subscripts)
    steps: list[Any] = []
    stretched = [
        tuple(i for i, label in enumerate(own) if shape[i] == 1 and sizes[label] != 1)
        for own, shape in zip(labels, shapes, strict=True)
    ]
    present = [
        tuple(label for i, label in enumerate(own) if i not in squeezed)
        for own, squeezed in zip(labels, stretched, strict=True)
    ]
    operands = []
    for position, own in enumerate(present):
        others = set(output).union(*[one for i, one in enumerate(present) if i != position])
        operands.append(_prepare(position, own, stretched[position], others, steps))
    for chosen in (*_path(operands, output, sizes, optimize), tuple(range(len(operands)))):
        group = sorted({i for i in chosen if i < len(operands)})
        while len(group) > 1:  # the first two; their product goes to the end
            first, second = group[0], group[1]
            rest = [one for i, one in enumerate(operands) if i not in (first, second)]
            product = _pair(first, second, operands, set(output).union(*rest), output, sizes, steps, not rest)
            operands = [*rest, product]
            group = [i - (i > first) - (i > second) for i in group[2:]] + [len(operands) - 1]
    names = operands[0]
    if names != output:
        summed = tuple(i for i, label in enumerate(names) if label not in output)
        kept = [label for label in names if label in output]
        steps.append(_One(0, (), (), summed, tuple(kept.index(label) for label in output)))
    return steps


def _sizes(labels: Sequence[Labels], shapes: Sequence[tuple[int, ...]], subscripts: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for position, (own, shape) in enumerate(zip(labels, shapes, strict=True)):
        for label, n in zip(own, shape, strict=True):
            if sizes.get(label, 1) != 1 and n not in (1, sizes[label]):
                name = "an axis under '...'" if _is_hidden(label) else f"label {label!r}"
                raise ValueError(
                    f"einsum: size of {name} for operand {position} ({n}) does not match previous terms "
                    f"({sizes[label]}); {shown(subscripts)} with shapes {', '.join(map(str, shapes))}"
                )
            sizes[label] = n if sizes.get(label, 1) == 1 else sizes[label]
    return sizes


def _prepare(
    position: int, own: Labels, squeezed: tuple[int, ...], others: set[str], steps: list[Any]
) -> Labels:
    """Lets an operand have each name once, no axis of size 1 where others are larger, and no name that only it has."""
    names = list(own)
    diagonals = []
    for label in dict.fromkeys(names):
        while names.count(label) > 1:
            first = names.index(label)
            second = names.index(label, first + 1)
            diagonals.append((first, second))
            names = [one for i, one in enumerate(names) if i not in (first, second)] + [label]
    summed = tuple(i for i, label in enumerate(names) if label not in others)
    kept = tuple(label for label in names if label in others)
    if squeezed or diagonals or summed:
        steps.append(_One(position, squeezed, tuple(diagonals), summed, tuple(range(len(kept)))))
    return kept


def _path(
    operands: Sequence[Labels], output: Labels, sizes: dict[str, int], optimize: Any
) -> list[tuple[int, ...]]:
    count = len(operands)
    if count == 1:
        return []
    if isinstance(optimize, tuple):
        return [step for step in optimize if isinstance(step, tuple)]
    if count == 2 or optimize is False:
        return [tuple(range(count))]
    import opt_einsum

    shapes = [tuple(sizes[label] for label in one) for one in operands]
    letters = {label: _letter(i) for i, label in enumerate(sorted(sizes))}
    terms = ["".join(letters[label] for label in one) for one in (*operands, output)]
    text = f"{','.join(terms[:-1])}->{terms[-1]}"
    method = "optimal" if optimize is True else optimize
    return opt_einsum.contract_path(text, *shapes, shapes=True, optimize=method)[0]


def _pair(
    first, second, operands, needed: set[str], output: Labels, sizes, steps: list[Any], is_last: bool
) -> Labels:
    """Plans the product of two operands and gives the names of its axes."""
    x, y = operands[first], operands[second]
    contracted = [label for label in x if label in y and label not in needed]
    names = [label for label in (*x, *y) if label not in contracted]
    names = list(dict.fromkeys(names))
    wanted = [label for label in output if label in names] if is_last else names
    if not contracted:
        order = tuple(wanted)
        shape = tuple(sizes[label] for label in order)
        orders, places = [], []
        for one in (x, y):
            own = [label for label in order if label in one]
            orders.append(tuple(one.index(label) for label in own))
            places.append(tuple(order.index(label) for label in own))
        steps.append(_Multiply(first, second, shape, tuple(orders), tuple(places)))  # type: ignore[arg-type]
        return order
    batch = [label for label in wanted if label in x and label in y]
    for swapped in (False, True):
        left, right = (y, x) if swapped else (x, y)
        natural = [*batch, *(n for n in left if n not in right), *(n for n in right if n not in left)]
        if natural == wanted:
            break
    else:
        left, right, swapped = x, y, False
        natural = [*batch, *(n for n in x if n not in y), *(n for n in y if n not in x)]
    numbers = (
        (tuple(left.index(n) for n in contracted), tuple(right.index(n) for n in contracted)),
        (tuple(left.index(n) for n in batch), tuple(right.index(n) for n in batch)),
    )
    order = () if natural == wanted or not is_last else tuple(natural.index(n) for n in wanted)
    pair = (second, first) if swapped else (first, second)
    steps.append(_Contract(*pair, numbers, order))
    return tuple(wanted if order else natural)
