"""What notebooks show instead of plain text: small pieces of HTML, made of NumPy arrays and texts alone.

Colours are those of the page around (`currentColor`), so that light and dark notebooks both can show them.
"""

from __future__ import annotations

import binascii
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

MOST_ELEMENTS = 1 << 22  # of an array that is looked at; of a larger one, as many are
_BINS = 48
_SIDE = 128  # of a picture, in pixels, at most
_MOST_LINES = 600
_ACCENT = "#6372e8"
_FRAME = (
    "border:1px solid #8886;border-radius:8px;padding:8px 12px;display:inline-block;font:13px/1.5 system-ui,sans-serif"
)


def escaped(text: str) -> str:
    """Text as HTML. (Python's `html` would slow down every import of purax.)

    >>> escaped('<a & "b">')
    '&lt;a &amp; &quot;b&quot;&gt;'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = (), caption: str = "") -> str:
    """Rows of a table as HTML.

    >>> table([("FLOP", 12)])
    '<table><tbody><tr><td>FLOP</td><td style="text-align:right">12</td></tr></tbody></table>'
    """

    def cell(value: Any) -> str:
        style = ' style="text-align:right"' if isinstance(value, int | float) else ""
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}" if isinstance(value, float) else str(value)
        return f"<td{style}>{escaped(text)}</td>"

    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    top = "".join(f"<th style='text-align:left'>{escaped(name)}</th>" for name in head)
    title = f"<caption style='text-align:left;font-weight:600'>{escaped(caption)}</caption>" if caption else ""
    return f"<table>{title}{f'<thead><tr>{top}</tr></thead>' if top else ''}<tbody>{body}</tbody></table>"


def framed(title: str, *parts: str) -> str:
    """Parts of HTML under a title, in a frame."""
    return f'<div style="{_FRAME}"><b>{escaped(title)}</b>{"".join(parts)}</div>'


def folded(title: str, text: str) -> str:
    """A long text that opens when its title is clicked."""
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} lines more"]
    body = escaped("\n".join(lines))
    style = "max-height:420px;overflow:auto;font-size:12px"
    return f'<details><summary>{escaped(title)}</summary><pre style="{style}">{body}</pre></details>'


def size_text(count: float) -> str:
    """Bytes as people read them.

    >>> size_text(3 * 2**20), size_text(12)
    ('3.0 MiB', '12 B')
    """
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:.0f} B"


# -- arrays


def array_html(title: str, array: np.ndarray, notes: str = "") -> str:
    """What an array is: a picture if it can be one, else how its numbers are distributed; with the text of the array.

    Args:
        title: its type.
        array: its values, or many of them.
        notes: what else is to be said.
    """
    parts = [f'<div style="opacity:.75">{escaped(notes)}</div>' if notes else ""]
    numbers = _numbers(array)
    if numbers is not None and numbers.size > 1:
        picture = picture_of(array)
        parts.append(f"<div>{picture or ''}{histogram(numbers)}</div>")
    with np.printoptions(threshold=200, edgeitems=3):
        parts.append(folded("values", np.array2string(array)))
    return framed(title, *parts)


def _numbers(array: np.ndarray) -> np.ndarray | None:
    """The values as floats; None for what has no order."""
    if array.dtype.kind in "cOSU":
        return None
    try:
        return np.asarray(array).ravel().astype(np.float64)
    except (TypeError, ValueError):
        return None


def histogram(numbers: np.ndarray) -> str:
    """The distribution of numbers as a small drawing, with least, greatest, mean, and what is not finite."""
    finite = numbers[np.isfinite(numbers)]
    bad = [(f"{np.isnan(numbers).sum():,} NaN", np.isnan(numbers).any())]
    bad.append((f"{np.isinf(numbers).sum():,} infinite", np.isinf(numbers).any()))
    warnings = ", ".join(text for text, is_there in bad if is_there)
    warned = f'<span style="color:#d33">{warnings}</span>' if warnings else ""
    if not finite.size:
        return warned
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = float(finite.mean()), float(finite.std())
    text = f"{low:.4g} … {high:.4g} &nbsp; mean {mean:.4g}, deviation {spread:.4g}"
    drawing = ""
    if high > low and np.isfinite(high - low):
        counts, _ = np.histogram(finite, _BINS, (low, high))
        heights = 38 * np.sqrt(counts / counts.max())
        bars = "".join(
            f'<rect x="{4 * i}" y="{40 - height:.1f}" width="3.4" height="{height:.1f}"/>'
            for i, height in enumerate(heights)
            if height
        )
        drawing = f'<svg width="{4 * _BINS}" height="40" fill="{_ACCENT}" style="display:block">{bars}</svg>'
    return f'<div style="display:inline-block;vertical-align:top">{drawing}<div>{text} {warned}</div></div>'


def picture_of(array: np.ndarray) -> str | None:
    """An array that can be a picture as one: height × width, with 1, 3 or 4 channels last; None for others."""
    if array.ndim == 3 and array.shape[2] in (1, 3, 4) and min(array.shape[:2]) >= 8:
        pixels = array
    elif array.ndim == 2 and min(array.shape) >= 8:
        pixels = array[:, :, None]
    else:
        return None
    if array.dtype.kind not in "uifb" and array.dtype.itemsize > 2:
        return None
    step = max(1, -(-max(pixels.shape[:2]) // _SIDE))
    pixels = pixels[::step, ::step]
    if pixels.dtype != np.uint8:
        values = pixels.astype(np.float64)
        finite = values[np.isfinite(values)]
        if not finite.size:
            return None
        low, high = float(finite.min()), float(finite.max())
        if array.ndim == 3 and 0 <= low and high <= 1:
            low, high = 0.0, 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            values = (values - low) / (high - low) if 0 < high - low < np.inf else np.zeros_like(values)
        pixels = (255 * np.clip(np.nan_to_num(values), 0, 1)).astype(np.uint8)
    data = binascii.b2a_base64(png(pixels), newline=False).decode()
    scale = max(1, round(96 / max(pixels.shape[:2])))
    height, width = (scale * n for n in pixels.shape[:2])
    style = "image-rendering:pixelated;margin:4px 14px 4px 0;border-radius:4px"
    return f'<img width="{width}" height="{height}" style="{style}" src="data:image/png;base64,{data}"/>'


def png(pixels: np.ndarray) -> bytes:
    """The bytes of a picture: height × width × (1, 3 or 4) numbers of 8 bits.

    >>> png(np.zeros((2, 2, 3), np.uint8))[:4]
    b'\\x89PNG'
    """
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter: none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


# -- programs

_TOKENS = re.compile(
    r"(?P<remark>#[^\n]*)|(?P<word>\b(?:lambda|let|in)\b)"
    r"|(?P<type>(?<=:)[a-z]+\d*(?:<[^>]*>)?\[[^\]\n]*\](?:\{[^}]*\})?)|(?P<operation>(?<== )[\w\-]+)"
)
_COLORS = {"remark": "#8a8f9c", "word": "#a64fc4", "type": "#2c9a76", "operation": _ACCENT}


def program_html(text: str) -> str:
    """The text of a jaxpr in colour."""
    lines = text.split("\n")
    if len(lines) > _MOST_LINES:
        text = "\n".join([*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES} lines more"])
    parts, end = [], 0
    for found in _TOKENS.finditer(text):
        parts.append(escaped(text[end : found.start()]))
        parts.append(f'<span style="color:{_COLORS[str(found.lastgroup)]}">{escaped(found[0])}</span>')
        end = found.end()
    parts.append(escaped(text[end:]))
    return f'<pre style="font-size:12.5px;line-height:1.45">{"".join(parts)}</pre>'
