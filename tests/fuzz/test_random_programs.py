"""A short run of the random programs, and of what the generator says of itself."""

from __future__ import annotations

from tests.fuzz import random_programs as programs


def test_a_difference_is_found_and_shrunk(monkeypatch):
    program = programs.Program(
        ("jnp.sin(x)", "v0 * 2.0", "jnp.cumsum(v1)", "v2 + y"),
        (1, 3),
        ("jit", "vmap"),
        ((3,), (3,)),
        ("float32",) * 2,
        0,
    )
    assert programs.difference(program) is None
    own = programs.difference
    monkeypatch.setattr(programs, "difference", lambda p: "cumsum" if "cumsum" in p.source() else own(p))
    small, message = programs.shrunk(program, "cumsum", 60.0)
    assert small.transformations == () and len(small.results) == 1 and len(small.lines) <= 2
    scope: dict = {}
    exec(small.script(message), scope)
