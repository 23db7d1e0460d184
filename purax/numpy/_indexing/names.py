"""What the user calls an array and its index, for messages: the expression `prices[start:stop]` in the line that runs.

The instruction that is running knows the columns of its expression. Where the source is not at hand, or the index is
not written there, messages say `x` and use general words.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
from typing import NamedTuple

from purax.core import source


class Written(NamedTuple):
    """An indexed expression as the user wrote it: `base[parts[0], parts[1], …]`."""

    base: str
    parts: tuple[ast.expr, ...]

    def masks(self) -> list[str]:
        """The parts that may be masks: neither slices nor constants."""
        fixed = (ast.Slice, ast.Constant)
        return [ast.unparse(part) for part in self.parts if not isinstance(part, fixed)]

    def slices(self) -> list[ast.Slice]:
        return [part for part in self.parts if isinstance(part, ast.Slice)]


def written_index() -> Written | None:
    """The indexed expression that the user's code is computing now; None if it cannot be found."""
    frame = source.user_frame(sys._getframe(1))
    if frame is None or frame.f_lasti < 0:
        return None
    places = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, end = places
    if first is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, n).encode() for n in range(first, last + 1)]
    if not lines or not lines[0]:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        expression = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    while isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        expression = expression.func.value  # x.at[i].set(y)
    if not isinstance(expression, ast.Subscript):
        return None
    base, index = expression.value, expression.slice
    if isinstance(base, ast.Attribute) and base.attr == "at":
        base = base.value
    return Written(ast.unparse(base), tuple(index.elts) if isinstance(index, ast.Tuple) else (index,))


def mask_names() -> tuple[str, str]:
    """What the user calls an array and the mask that it is indexed with; `x` and `mask` if that is not known."""
    written = written_index()
    if written is None:
        return "x", "mask"
    masks = written.masks()
    return written.base, masks[0] if len(masks) == 1 else "mask"


def slice_names() -> tuple[str, str | None, str | None]:
    """What the user calls an array and the bounds of its only slice; `x`, `start` and `stop` if that is not known."""
    written = written_index()
    if written is None or len(written.slices()) != 1:
        return "x" if written is None else written.base, "start", "stop"
    [part] = written.slices()
    lower, upper = (None if bound is None else ast.unparse(bound) for bound in (part.lower, part.upper))
    return written.base, lower, upper
