"""The decoder of instructions agrees with Python's own."""

from __future__ import annotations

import argparse
import ast
import asyncio.base_events
import dataclasses
import dis
import inspect
import types
import typing

import pytest

from purax.purity.instructions import instructions_of
from tests.purity import control_flow_idioms, impure_idioms

MODULES = [
    argparse,
    ast,
    asyncio.base_events,
    dataclasses,
    inspect,
    typing,
    control_flow_idioms,
    impure_idioms,
]


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_instructions_are_those_of_dis(module):
    text = inspect.getsource(module)
    count = 0
    for code in codes(compile(text, module.__file__, "exec")):
        own = list(instructions_of(code))
        wanted = list(dis.get_instructions(code))
        assert [i.offset for i in own] == [i.offset for i in wanted]
        for a, b in zip(own, wanted, strict=True):
            assert a.opname == b.opname
            if a.opname == "BINARY_OP":
                assert a.argval == b.argrepr
            elif a.opname == "KW_NAMES":
                assert a.argval == code.co_consts[b.arg]
            elif b.opcode in (*dis.hasconst, *dis.hasname, *dis.haslocal, *dis.hasfree, *dis.hasjrel):
                assert a.argval == b.argval, (a.opname, a.argval, b.argval)
            elif b.arg is not None:
                assert a.arg == b.arg
            lines = {None, b.positions.lineno} if b.positions else {None}
            assert a.line in lines or b.positions.lineno is None
            count += 1
    assert count > 1000
