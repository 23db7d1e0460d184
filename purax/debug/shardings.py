"""Pictures of how arrays are sharded over devices: boxes in the terminal, in colour if it has any, or an SVG image."""

from __future__ import annotations

import html
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from purax.core.limits import finite, numpy_value
from purax.core.source import located
from purax.errors import shown
from purax.sharding.inspection import inspect_array_sharding

# Told apart by most eyes, and light enough for black letters.
_PALETTE = (
    "#8dd3c7 #ffffb3 #bebada #fb8072 #80b1d3 #fdb462 #b3de69 #fccde5 #d9d9d9 #bc80bd #ccebc5 #ffed6f "
    "#a6cee3 #cab2d6 #ffff99 #f4cae4"
).split()
_LINES = {"top": "┌┬┐", "middle": "├┼┤", "bottom": "└┴┘", "across": "─", "down": "│"}
_PLAIN_LINES = {"top": "+++", "middle": "+++", "bottom": "+++", "across": "-", "down": "|"}


def visualize_sharding(
    shape: Sequence[int],
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Callable[[float], Sequence[float]] | None = None,
    image: str | os.PathLike | None = None,
) -> None:
    """Prints a picture of the parts into which a sharding cuts an array, each with the devices that hold it.

    Args:
        shape: of the array. Of more than two axes the last two are drawn, once for each part along the others.
        sharding: how it is sharded over devices.
        use_color: whether parts have colours, on terminals that show them.
        scale: makes the boxes higher and wider.
        min_width: of a box, in letters.
        max_width: of the picture.
        color_map: gives, for a number from 0 to 1, a colour as three (or four) numbers from 0 to 1.
        image: a file for an SVG image, which is written instead of the text.

    >>> import purax as px
    >>> px.debug.visualize_sharding((8, 4), px.numpy.ones(3).sharding)
    ┌─────────┐
    │  CPU 0  │
    └─────────┘
    """
    shape = tuple(finite(shape))
    if image is not None:
        Path(image).write_text(sharding_svg(shape, sharding, color_map=color_map), encoding="utf-8")
        return
    colored = use_color and _shows_colors(sys.stdout)
    lines = _LINES if _can_write(sys.stdout, _LINES["across"]) else _PLAIN_LINES
    for title, grid in _pictures(shape, sharding):
        if title:
            print(title)
        print("\n".join(_boxes(grid, colored, scale, min_width, max_width, color_map, lines)))


def visualize_array_sharding(arr: Any, **options: Any) -> None:
    """Prints a picture of how an array is sharded over devices; see `visualize_sharding` for the options.

    Inside of `jit` it is printed when the program is compiled, and shows what the compiler chooses.

    >>> import purax as px
    >>> px.debug.visualize_array_sharding(px.numpy.ones((4, 4)), min_width=5)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = np.shape(arr if hasattr(arr, "shape") else numpy_value(arr))
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(shape, sharding, **options))


def sharding_svg(
    shape: Sequence[int],
    sharding: Any,
    *,
    color_map: Callable[[float], Sequence[float]] | None = None,
    size: int = 320,
) -> str:
    """The picture of `visualize_sharding` as the text of an SVG image.

    Args:
        shape: of the array.
        sharding: how it is sharded over devices.
        color_map: see `visualize_sharding`.
        size: of the longer side of the array in the image, in pixels.

    >>> import purax as px
    >>> px.debug.sharding_svg((8, 4), px.numpy.ones(3).sharding).count("<rect")
    1
    """
    parts, top, wide = [], 0.0, 0.0
    shape = tuple(finite(shape))
    for title, grid in _pictures(shape, sharding):
        rows, columns = shape[-2:] if len(shape) > 1 else (1, *shape) if shape else (1, 1)
        # Very long arrays are drawn no thinner than a tenth of their length.
        longest = max(rows, columns, 1)
        height = size * max(rows / longest, 0.1, 0.06 * len(grid))
        width = size * max(columns / longest, 0.1, 0.2 * len(grid[0]))
        if title:
            parts.append(f'<text x="4" y="{top + 16:.0f}" text-anchor="start">{html.escape(title)}</text>')
            top += 22
        count = len({label for row in grid for label in row})
        colors = {label: _color(i, count, color_map) for i, label in enumerate(_labels(grid))}
        high, broad = height / len(grid), width / len(grid[0])
        for i, row in enumerate(grid):
            for j, label in enumerate(row):
                x, y = j * broad + 4, top + i * high + 4
                parts.append(
                    f'<rect x="{x:.1f}" y="{y:.1f}" width="{broad:.1f}" height="{high:.1f}" fill="{colors[label]}"/>'
                )
                parts.append(
                    f'<text x="{x + broad / 2:.1f}" y="{y + high / 2:.1f}" dominant-baseline="middle" '
                    f'text-anchor="middle">{html.escape(label)}</text>'
                )
        top, wide = top + height + 12, max(wide, width + 8)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{top:.0f}" font-family="sans-serif"'
    return "\n".join([f'{head} font-size="13" stroke-width="1">', *parts, "</svg>\n"]).replace(
        "<rect ", '<rect stroke="black" '
    )


def _pictures(shape: tuple[int, ...], sharding: Any) -> Iterator[tuple[str, list[list[str]]]]:
    """For each part along all but the last two axes a title, and for each part along those the devices that have it."""
    try:
        places = sharding.devices_indices_map(shape)
    except AttributeError:
        raise located(
            TypeError,
            f"visualize_sharding needs a sharding, got {shown(sharding)} of type {type(sharding).__name__}",
        ) from None
    holders: dict[tuple[int, ...], list[Any]] = {}
    for device, index in places.items():
        corner = tuple(part.start or 0 for part in index)
        holders.setdefault((0,) * (2 - len(corner)) + corner, []).append(device)
    starts = [sorted(set(along)) for along in zip(*holders, strict=True)]
    for outer in itertools.product(*starts[:-2]):
        bounds = [[*along, n] for along, n in zip(starts, shape, strict=False)]
        ranges = [f"{at}:{ends[ends.index(at) + 1]}" for at, ends in zip(outer, bounds, strict=False)]
        title = f"[{', '.join([*ranges, ':', ':'])}]" if ranges else ""
        yield title, [[_label(holders[(*outer, row, column)]) for column in starts[-1]] for row in starts[-2]]


def _label(devices: Sequence[Any]) -> str:
    """The platform and the numbers of devices: `CPU 0-3,6`."""
    numbers = sorted(device.id for device in devices)
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return f"{devices[0].platform.upper()} {','.join(shown)}"


def _labels(grid: list[list[str]]) -> list[str]:
    return list(dict.fromkeys(label for row in grid for label in row))


def _boxes(
    grid: list[list[str]],
    colored: bool,
    scale: float,
    min_width: int,
    max_width: int,
    color_map: Callable | None,
    lines: dict[str, str],
) -> Iterator[str]:
    columns = len(grid[0])
    longest = max(len(label) for row in grid for label in row)
    width = max(min_width, longest + 2, math.ceil(min_width * scale))
    width = max(3, min(width, (max_width - 1) // columns - 1))
    texts = {label: _wrapped(label, width) for row in grid for label in row}
    height = max(max(map(len, texts.values())), round(scale))
    labels = _labels(grid)
    colors = {label: _escape(_color(i, len(labels), color_map)) for i, label in enumerate(labels)}

    def rule(place: str) -> str:
        left, cross, right = list(lines[place])
        return left + cross.join([lines["across"] * width] * columns) + right

    yield rule("top")
    for i, row in enumerate(grid):
        if i:
            yield rule("middle")
        for line in range(height):
            cells = []
            for label in row:
                text = texts[label]
                above = (height - len(text)) // 2
                shown = text[line - above] if 0 <= line - above < len(text) else ""
                cell = shown.center(width)
                cells.append(f"{colors[label]}{cell}\x1b[0m" if colored else cell)
            yield lines["down"] + lines["down"].join(cells) + lines["down"]
    yield rule("bottom")


def _wrapped(label: str, width: int) -> list[str]:
    """A label in lines of at most `width` letters, broken at commas and blanks where that is possible."""
    pieces = label.replace(",", ",\0").replace(" ", " \0").split("\0")
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [part for line in lines for part in _chunks(line.rstrip(), width)]


def _chunks(text: str, width: int) -> list[str]:
    return [text[i : i + width] for i in range(0, len(text), width)] or [""]


def _color(i: int, count: int, color_map: Callable[[float], Sequence[float]] | None) -> str:
    if color_map is None:
        return _PALETTE[i % len(_PALETTE)]
    red, green, blue = (round(255 * float(part)) for part in tuple(color_map(i / max(count - 1, 1)))[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


def _escape(color: str) -> str:
    """What switches a terminal to black letters on a colour."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"\x1b[30;48;2;{red};{green};{blue}m"


def _shows_colors(stream: Any) -> bool:
    return hasattr(stream, "isatty") and stream.isatty() and "NO_COLOR" not in os.environ


def _can_write(stream: Any, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True
