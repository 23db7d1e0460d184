"""What libraries are given, compared before and after a function is traced: they may change it, and nothing tells.

It is all that is needed where no code of the user's can have a side effect itself, so that nothing has to be watched.
"""

from __future__ import annotations

import types
from typing import Any

from purax.purity import findings as tell
from purax.purity.effects import changed, is_cached_property
from purax.purity.outside import Outside


class Given:
    """The values that libraries are given, as they were before; `shared` says where each of them is handed over."""

    def __init__(self, shared: dict[int, tuple[Any, str, types.CodeType | None, int]]):
        self.shared = shared
        self.outside = Outside()
        for value, name, _, _ in shared.values():
            self.outside.add(value, name)

    def compare(self, mode: str) -> None:
        """Tells which of them changed: as warnings, or in strict mode as an error, after putting them back."""
        for key, (value, name, code, line) in self.shared.items():
            if code is None or not self.outside.changed(value):
                continue
            before = self.outside.before[key]
            if is_cached_property(value, before):
                continue
            found = changed(value, name, False, before, code, line)
            if mode == "strict":
                self.outside.restore()
                raise tell.error(found)
            tell.warn(found)
