"""Random captured state of every kind, changed between two calls of a compiled function, against plain Python.

A program has a kind of state, a place where it is kept, a way to read it, a change, and transformations around the
function that reads it. `run(seed, seconds)` gives the programs in which a compiled function did not see the change.
"""

# ruff: noqa: E501
from __future__ import annotations

import builtins
import collections
import fractions
import logging
import math
import os
import random
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np


class Kind(NamedTuple):
    """A kind of state: expressions that make it and another one, that read it (`{r}`), and that change it (`{s}`)."""

    made: str
    other: str
    reads: tuple[str, ...]
    changes: tuple[str, ...] = ()


_SEQUENCE = (
    "{r}[0]", "{r}[-1]", "sum({r})", "len({r}) * 1.0", "max({r})", "[w * 2 for w in {r}][0]", "next(iter({r}))",
    "(1.0 if 9.0 in {r} else 2.0)", "functools.reduce(operator.add, {r})", "attempt(lambda: {r}[5], 3.0)",
    "sum(w * i for i, w in enumerate({r}))", "dict(enumerate({r}))[0]", "list(map(float, {r}))[0]", "(lambda a, *b: a)(*{r})",
    "np.asarray({r}).sum()", "jnp.asarray({r}).sum()", "sorted({r})[0]", "px.tree.leaves({r})[0]", "copy.copy({r})[0]",
)  # fmt: skip
_MAPPING = (
    "{r}['a']", "{r}.get('late', 1.0)", "len({r}) * 1.0", "sum({r}.values())", "(3.0 if 'late' in {r} else 1.0)",
    "list({r}.items())[-1][1]", "attempt(lambda: {r}['late'], 2.5)", "dict({r})['a']", "{{**{r}}}['a']",
    "max({r}.values())", "sum(v for k, v in {r}.items())", "(lambda a, **k: a)(**{r})", "list({r}.values())[0]",
    "px.tree.leaves(dict({r}))[0]", "copy.deepcopy(dict({r}))['a']", "'{{a}}'.format(**{r}).count('9') + 1.0",
)  # fmt: skip
_MAPPING_CHANGES = (
    "{s}['a'] = 9.0", "{s}['late'] = 7.0", "{s}.update(late=4.0)", "{s}.pop('a'); {s}['a'] = 8.0", "del {s}['b']",
    "{s}.clear(); {s}['a'] = 5.0", "{s}.setdefault('late', 6.0)",
)  # fmt: skip
_OBJECT = (
    "{r}.a", "getattr({r}, 'a')", "getattr({r}, 'late', 1.0)", "(2.0 if hasattr({r}, 'late') else 1.0)",
    "attempt(lambda: {r}.late, 4.0)", "vars({r})['a']", "operator.attrgetter('a')({r})", "{r}.__dict__.get('late', 2.0)",
    "getattr({r}, 'a' * 1)", "sum(v for v in vars({r}).values() if isinstance(v, float))", "copy.copy({r}).a",
    "getattr({r}, NAMES[0])", "copy.deepcopy({r}).__dict__['a']", "inspect.getattr_static({r}, NAMES[0])", "len(pickle.dumps(vars({r}))) * 1.0", "pickle.loads(pickle.dumps({r}.__dict__))['a']",
)  # fmt: skip
_OBJECT_CHANGES = (
    "{s}.a = 9.0", "{s}.late = 7.0", "setattr({s}, 'a', 8.0)", "vars({s})['a'] = 6.0", "{s}.__dict__.update(late=5.0)",
    "del {s}.a; {s}.a = 3.5",
)  # fmt: skip
_ARRAY = (
    "{r}[0]", "{r}.sum()", "{r}.max()", "np.sum({r})", "jnp.sum(jnp.asarray({r}))", "{r}[::-1][0]", "{r}.reshape(-1)[0]",
    "float({r}[0])", "{r}.tolist()[0]", "({r} * 2)[0]", "{r}.copy()[0]", "{r}.T[0]", "np.dot({r}, {r})",
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "float": Kind("2.0", "5.0", ("{r}", "({r} + 1.0)", "round({r}, 1)", "(1.0 if {r} > 3.0 else 2.0)", "float('%.1f' % {r})")),
    "int": Kind("2", "5", ("{r}", "sum(range({r}))", "([1.0] * {r} + [9.0])[2]", "int(str({r}))")),
    "bool": Kind("True", "False", ("(1.0 if {r} else 2.0)", "(3.0 if not {r} else 1.0)")),
    "None": Kind("None", "4.0", ("(1.0 if {r} is None else {r})", "({r} or 2.0)")),
    "complex": Kind("(1+2j)", "(3-1j)", ("{r}.real", "abs({r})")),
    "negative zero": Kind("0.0", "-0.0", ("math.copysign(1.0, {r})",)),
    "str": Kind("'sin'", "'cosh'", ("len({r}) * 1.0", "getattr(jnp, {r})(x)", "getattr(math, {r})(0.5)", "ord({r}[0]) * 1.0",
                                   "TABLE[{r}]", "TABLE.get({r}, 0.0)", "globals()['V' + {r}]", "getattr(px.numpy, {r})(x * 2)")),
    "bytes": Kind("b'ab'", "b'xyz'", ("len({r}) * 1.0", "{r}[0] * 1.0")),
    "list": Kind("[1.0, 2.0]", "[6.0, 5.0, 4.0]", _SEQUENCE, (
        "{s}.append(9.0)", "{s}[0] = 9.0", "{s}.insert(0, 9.0)", "{s}.reverse()", "{s}[:] = [8.0, 9.0]", "{s}.pop()",
        "{s} += [9.0]", "{s} *= 2", "del {s}[0]", "{s}.extend([3.0, 9.0])", "{s}.sort(reverse=True)")),
    "tuple": Kind("(1.0, 2.0)", "(6.0, 5.0, 9.0)", _SEQUENCE),
    "nested list": Kind("[[1.0], [2.0]]", "[[3.0], [4.0]]", ("{r}[0][0]", "sum(map(sum, {r}))", "sum(w[0] for w in {r})"),
                        ("{s}[0][0] = 9.0", "{s}[1].append(9.0); {s}[0][0] = 3.0", "{s}[0] = [7.0]")),
    "list in tuple": Kind("([1.0], 2.0)", "([3.0], 2.0)", ("{r}[0][0]", "sum({r}[0]) + {r}[1]"), ("{s}[0][0] = 9.0", "{s}[0].append(4.0); {s}[0][0] = 3.0")),
    "set": Kind("{{1.0, 2.0}}", "{{5.0}}", ("sum({r})", "len({r}) * 1.0", "(1.0 if 9.0 in {r} else 2.0)", "max({r})"),
                ("{s}.add(9.0)", "{s}.discard(2.0)", "{s}.update([9.0])", "{s} |= {{9.0}}")),
    "frozenset": Kind("frozenset([1.0, 2.0])", "frozenset([9.0])", ("sum({r})", "len({r}) * 1.0", "(1.0 if 9.0 in {r} else 2.0)")),
    "dict": Kind("{{'a': 1.0, 'b': 2.0}}", "{{'a': 4.0}}", _MAPPING, _MAPPING_CHANGES),
    "OrderedDict": Kind("collections.OrderedDict(a=1.0, b=2.0)", "collections.OrderedDict(b=2.0, a=5.0)", _MAPPING,
                        (*_MAPPING_CHANGES, "{s}.move_to_end('a')")),
    "defaultdict": Kind("collections.defaultdict(float, a=1.0, b=2.0)", "collections.defaultdict(float, a=3.0)", _MAPPING[:3], _MAPPING_CHANGES),
    "Counter": Kind("collections.Counter('aab')", "collections.Counter('abb')", ("{r}['a'] * 1.0", "sum({r}.values()) * 1.0", "len({r}) * 1.0"), ("{s}['a'] += 4", "{s}.update('aaa')")),
    "ChainMap": Kind("collections.ChainMap({{}}, {{'a': 1.0, 'b': 2.0}})", "collections.ChainMap({{'a': 3.0}})", _MAPPING[:5], ("{s}['a'] = 9.0", "{s}.maps[1]['a'] = 8.0; {s}['late'] = 2.0")),
    "UserDict": Kind("collections.UserDict(a=1.0, b=2.0)", "collections.UserDict(a=3.0)", _MAPPING[:6], _MAPPING_CHANGES[:3]),
    "UserList": Kind("collections.UserList([1.0, 2.0])", "collections.UserList([5.0, 9.0])", _SEQUENCE[:4], ("{s}.append(9.0); {s}[0] = 4.0",)),
    "proxy": Kind("types.MappingProxyType(BASE)", "types.MappingProxyType({{'a': 8.0}})", _MAPPING[:5], ("BASE['a'] = 9.0; BASE['late'] = 3.0; BASE['b'] = 7.0",)),
    "values view": Kind("BASE.values()", "{{'a': 8.0}}.values()", ("sum({r})", "list({r})[0]", "len({r}) * 1.0"), ("BASE['a'] = 9.0; BASE['late'] = 3.0",)),
    "items view": Kind("BASE.items()", "{{'a': 8.0}}.items()", ("dict({r})['a']", "len({r}) * 1.0"), ("BASE['a'] = 9.0; BASE['late'] = 3.0",)),
    "empty deque": Kind("collections.deque()", "collections.deque([3.0])", ("len({r}) * 1.0", "(sum({r}) + 1.0)"), ("{s}.append(9.0)",)),
    "empty list": Kind("[]", "[3.0]", ("len({r}) * 1.0 + 1.0", "(sum({r}) + 1.0)"), ("{s}.append(9.0)",)),
    "empty object": Kind("Empty()", "Empty()", ("getattr({r}, 'late', 1.0)", "attempt(lambda: {r}.late, 2.0)"), ("{s}.late = 9.0", "Empty.late = 8.0")),
    "deque": Kind("collections.deque([1.0, 2.0])", "collections.deque([4.0])", _SEQUENCE[:6], ("{s}.append(9.0); {s}[0] = 7.0", "{s}.appendleft(9.0)", "{s}.rotate(1)", "{s}.popleft()")),
    "array.array": Kind("array.array('d', [1.0, 2.0])", "array.array('d', [3.0])", _SEQUENCE[:4], ("{s}[0] = 9.0", "{s}.append(9.0); {s}[0] = 7.0; {s}[-1] = 4.0")),
    "bytearray": Kind("bytearray(b'ab')", "bytearray(b'xyz')", ("{r}[0] * 1.0", "len({r}) * 1.0", "sum({r}) * 1.0"), ("{s}[0] = 9; {s}.append(4)",)),
    "memoryview": Kind("memoryview(BUFFER)", "memoryview(b'xyz')", ("{r}[0] * 1.0", "sum({r}) * 1.0"), ("BUFFER[0] = 9",)),
    "array": Kind("np.array([1.0, 2.0], np.float32)", "np.array([5.0, 7.0, 9.0], np.float32)", _ARRAY, (
        "{s}[0] = 9.0; {s}[1] = 12.0", "{s}.fill(4.0)", "{s} += 1", "np.copyto({s}, 3.0)", "{s}[:] = [7.0, 8.0]",
        "{s}.flags.writeable = False; {s}.flags.writeable = True; {s}[:] = 6.0; {s}.flags.writeable = False")),
    "read-only array": Kind("frozen(np.array([1.0, 2.0], np.float32))", "frozen(np.array([5.0, 7.0], np.float32))", _ARRAY,
                            ("{s}.flags.writeable = True; {s}[:] = 9.0; {s}.flags.writeable = False",)),
    "view": Kind("ARRAY[1:]", "ARRAY[2:] * 3", _ARRAY, ("ARRAY[:] = 9.0", "ARRAY *= 4")),
    "flat": Kind("ARRAY.flat", "np.array([7.0, 8.0]).flat", ("{r}[0]", "sum(np.asarray(list({r}.copy())))", "{r}.base[0]"), ("ARRAY[:] = 9.0",)),
    "object array": Kind("np.array([1.0, [2.0]], object)", "np.array([4.0, [5.0]], object)", ("{r}[0] + {r}[1][0]",), ("{s}[0] = 9.0", "{s}[1][0] = 8.0")),
    "record array": Kind("np.zeros(2, [('a', float), ('b', float)])", "np.ones(2, [('a', float), ('b', float)])", ("{r}['a'][0] + 1.0", "{r}['b'].sum() + 2.0"), ("{s}['a'][0] = 9.0; {s}['b'] = 5.0",)),
    "jnp array": Kind("jnp.array([1.0, 2.0])", "jnp.array([5.0, 7.0])", ("{r}[0]", "{r}.sum()", "np.asarray({r})[0]", "float({r}.max()) if False else np.asarray({r}).sum()", "{r}.at[0].add(1.0)[0]")),
    "dict of jnp arrays": Kind("{{'w': jnp.ones(2), 'b': [jnp.zeros(2)]}}", "{{'w': jnp.ones(3), 'b': []}}", ("{r}['w'].sum()", "sum(v.sum() for v in px.tree.leaves({r}))"),
                               ("{s}['w'] = jnp.array([4.0, 5.0])", "{s}['b'].append(jnp.ones(1)); {s}['w'] = {s}['w'] + 1")),
    "checksum": Kind("hashlib.sha256(b'a')", "hashlib.sha256(b'bc')", ("{r}.digest()[0] * 1.0",), ("{s}.update(b'q')",)),
    "decimal context": Kind("decimal.Context(prec=3)", "decimal.Context(prec=1)", ("float({r}.divide(1, 3))",), ("{s}.prec = 2",)),
    "error of the system": Kind("OSError(2, 'a')", "OSError(5, 'b')", ("{r}.errno * 1.0",), ("{s}.errno = 7",)),
    "decompressor": Kind("zlib.decompressobj()", "zlib.decompressobj()", ("len({r}.unused_data) + 1.0",), ("{s}.decompress(zlib.compress(b'a') + b'rest')",)),
    "database": Kind("table_of(2.0)", "table_of(3.0)", ("{r}.execute('select a from t').fetchone()[0]",), ("{s}.execute('update t set a = 6.0')",)),
    "element": Kind("xml.etree.ElementTree.fromstring('<a><b/></a>')", "xml.etree.ElementTree.fromstring('<a/>')", ("len({r}) + 1.0", "len({r}.attrib) + 1.0"), ("{s}.append(xml.etree.ElementTree.Element('c')); {s}.set('k', 'v')")),
    "np scalar": Kind("np.float32(2)", "np.float64(5)", ("{r}", "float({r})")),
    "namespace": Kind("types.SimpleNamespace(a=1.0, b=2.0)", "types.SimpleNamespace(a=4.0)", _OBJECT, _OBJECT_CHANGES),
    "object": Kind("Plain(1.0)", "Plain(4.0)", (*_OBJECT, "{r}.double()", "{r}.triple", "{r}.static()", "{r}.of_class()", "{r}()", "({r} + 1.0)", "{r}.shared",
                                              "{r}['key']", "len({r}) * 1.0", "{r}.items[0]", "{r}.inner.late", "type({r}).shared", "{r}.nested()"),
                   (*_OBJECT_CHANGES, "{s}.items[0] = 9.0; {s}.a = 2.5", "{s}.__class__ = Other", "{s}.inner.late = 5.0; {s}.a = 9.0", "{s}.shared = 8.0; {s}.a = 9.0",
                    "Plain.shared = 9.0; {s}.a = 3.0", "Plain.double = lambda self: 77.0; {s}.a = 5.0", "Plain.triple = property(lambda self: 55.0); {s}.a = 6.0")),
    "class attribute": Kind("Plain", "Other", ("{r}.shared", "{r}(2.0).double()", "{r}.static()", "{r}.of_class()", "getattr({r}, 'late', 2.0)"),
                            ("{s}.shared = 9.0; {s}.late = 4.0; {s}.double = lambda self: 33.0; {s}.static = staticmethod(lambda: 44.0); {s}.of_class = classmethod(lambda cls: 66.0)",)),
    "method": Kind("Plain(1.0).double", "Plain(5.0).double", ("{r}()",), ("{s}.__self__.a = 9.0", "Plain.extra = lambda self: 1.0; {s}.__self__.a = 3.0")),
    "patched method": Kind("Plain(1.0)", "Plain(5.0)", ("{r}.double()", "{r}.nested()"), ("{s}.double = lambda: 99.0", "Plain.double = lambda self: 98.0",
                           "Plain.double.__code__ = Other.double.__code__", "Plain.double.__defaults__ = (50.0,)")),
    "slots": Kind("Slots(1.0)", "Slots(4.0)", ("{r}.a", "getattr({r}, 'a')", "getattr({r}, 'b', 2.0)", "attempt(lambda: {r}.b, 3.0)"), ("{s}.a = 9.0; {s}.b = 5.0", "{s}.b = 7.0; {s}.a = 2.0")),
    "dataclass": Kind("Data(1.0)", "Data(4.0)", ("{r}.a", "dataclasses.asdict({r})['a']", "dataclasses.astuple({r})[0]", "dataclasses.replace({r}, b=1.0).a", "({r} == Data(9.0)) + 1.0",
                                               "len(repr({r})) * 1.0", "{r}.listed[0]"), ("{s}.a = 9.0; {s}.listed[0] = 7.0", "{s}.a = 12345.0; {s}.listed = [8.0]")),
    "ordered dataclass": Kind("Ordered(1.0)", "Ordered(9.0)", ("(1.0 if {r} < Ordered(5.0) else 2.0)", "(1.0 if sorted([Ordered(5.0), {r}])[1].a == 5.0 else 2.0)", "min({r}, Ordered(3.0)).a",
                                               "({r} == Ordered(7.0)) + 1.0", "[Ordered(7.0), {r}].index({r}) + 1.0", "len('%s' % {r}) * 1.0", "float('{{0.a}}'.format({r}))", "dataclasses.astuple({r})[0]"),
                              ("{s}.a = 7.0", "{s}.a = 77777.0")),
    "filled by reading": Kind("collections.defaultdict(float)", "collections.defaultdict(float, late=3.0)", ("({r}['late'] + 1.0)", "({r}.setdefault('late', 0.0) + 1.0)"), ("{s}['late'] = 7.0",)),
    "descriptor": Kind("Described()", "Described()", ("{r}.value",), ("{s}._value = 9.0", "Described.__dict__['value'].scale = 8.0")),
    "dynamic": Kind("Dynamic(a=1.0)", "Dynamic(a=5.0)", ("{r}.a", "{r}['a']", "getattr({r}, 'late', 2.0)"), ("{s}.table['a'] = 9.0; {s}.table['late'] = 8.0",)),
    "list subclass": Kind("Listed([1.0, 2.0])", "Listed([4.0])", (*_SEQUENCE[:4], "{r}.extra"), ("{s}.append(9.0); {s}[0] = 7.0; {s}.extra = 5.0",)),
    "dict subclass": Kind("Mapped(a=1.0, b=2.0)", "Mapped(a=4.0)", (*_MAPPING[:5], "{r}.a"), _MAPPING_CHANGES[:1]),
    "named tuple": Kind("Pair(1.0, [2.0])", "Pair(3.0, [4.0])", ("{r}.first + {r}.second[0]", "{r}[1][0]", "{r}._asdict()['second'][0]"), ("{s}.second[0] = 9.0",)),
    "enum": Kind("Color.RED", "Color.BLUE", ("{r}.value * 1.0", "len({r}.name) * 1.0", "Color[{r}.name].value * 1.0", "(1.0 if {r} is Color.RED else 2.0)")),
    "function": Kind("helper", "helper2", ("{r}(2.0)", "{r}.__defaults__[0]", "getattr({r}, 'scale', 1.0)", "attempt(lambda: {r}.scale, 2.0)"), (
        "helper.__defaults__ = (9.0,); helper.scale = 8.0", "helper.__code__ = helper2.__code__; helper.__defaults__ = (4.0,); helper.scale = 3.0")),
    "keyword default": Kind("keyed", "keyed2", ("{r}(2.0)",), ("keyed.__kwdefaults__['by'] = 9.0", "keyed.__kwdefaults__ = {{'by': 8.0}}", "keyed.__code__ = keyed2.__code__")),
    "function of a global": Kind("reading", "helper", ("{r}(2.0)", "list(map({r}, [1.0]))[0]"), ("globals().update(GLOBAL=9.0)",)),
    "partial": Kind("functools.partial(added, [1.0])", "functools.partial(added, [5.0])", ("{r}(2.0)", "{r}.args[0][0]"), ("{s}.args[0][0] = 9.0",)),
    "keyword partial": Kind("functools.partial(added, items=[1.0])", "functools.partial(added, items=[6.0])", ("{r}(y=2.0)", "{r}.keywords['items'][0]"), ("{s}.keywords['items'][0] = 9.0", "{s}.keywords.update(items=[7.0])")),
    "closure": Kind("closing()", "closing(5.0)", ("{r}[0](2.0)",), ("{s}[1](9.0)",)),
    "jitted": Kind("J(functools.partial(added, LIST))", "J(functools.partial(added, [6.0]))", ("{r}(2.0)",), ("LIST[0] = 9.0",)),
    "jitted keyword": Kind("J(functools.partial(added, items=LIST))", "J(functools.partial(added, items=[6.0]))", ("{r}(y=2.0)",), ("LIST[0] = 9.0", "LIST.append(3.0)")),
    "jitted gradient": Kind("J(px.grad(functools.partial(scaled, LIST)))", "J(px.grad(functools.partial(scaled, [6.0])))", ("{r}(x)",), ("LIST[0] = 9.0",)),
    "vmapped": Kind("px.vmap(functools.partial(added, LIST))", "px.vmap(functools.partial(added, [4.0]))", ("{r}(jnp.ones(2)).sum()",), ("LIST[0] = 9.0",)),
    "memoized": Kind("memo", "memo2", ("{r}()",), ("globals().update(GLOBAL=9.0); memo.cache_clear()", "memo.cache_clear(); globals().update(GLOBAL=7.0); memo()")),
    "dispatch": Kind("dispatching", "dispatching", ("{r}(2.0)",), ("dispatching.register(float, lambda v: 9.0)",)),
    "module": Kind("MODULE", "MODULE2", ("{r}.rate", "getattr({r}, 'rate')", "getattr({r}, 'late', 2.0)", "{r}.table['a']", "{r}.scale(2.0)"), ("{s}.rate = 9.0; {s}.late = 8.0; {s}.table['a'] = 7.0",)),
    "local import": Kind("1.0", "2.0", ("imported() * {r}",), ("MODULE.rate = 9.0",)),
    "context variable": Kind("VARIABLE", "VARIABLE2", ("{r}.get()", "{r}.get(3.0)"), ("{s}.set(9.0)",)),
    "weak reference": Kind("weakref.ref(KEPT)", "weakref.ref(KEPT2)", ("{r}().a",), ("KEPT.a = 9.0",)),
    "weak dict": Kind("weakref.WeakValueDictionary(k=KEPT)", "weakref.WeakValueDictionary(k=KEPT2)", ("{r}['k'].a", "len({r}) * 1.0"), ("KEPT.a = 9.0; {s}['other'] = KEPT2",)),
    "thread local": Kind("LOCAL", "LOCAL", ("{r}.a", "getattr({r}, 'late', 2.0)"), ("{s}.a = 9.0; {s}.late = 4.0",)),
    "StringIO": Kind("io.StringIO('ab')", "io.StringIO('abcd')", ("len({r}.getvalue()) * 1.0",), ("{s}.write('xyz')", "{s}.truncate(1)")),
    "sparse": Kind("scipy.sparse.csr_matrix(np.eye(2))", "scipy.sparse.csr_matrix(np.ones((2, 2)))", ("{r}.sum()", "{r}.toarray()[0, 0]", "{r}.data[0]", "({r} @ np.ones(2))[0]"), ("{s}.data[:] = 9.0",)),
    "decimal": Kind("decimal.Decimal(1)", "decimal.Decimal(2)", ("float({r} / decimal.Decimal(3))",), ("decimal.getcontext().prec = 3",)),
    "fraction": Kind("fractions.Fraction(1, 3)", "fractions.Fraction(2, 3)", ("float({r})",)),
    "date": Kind("datetime.date(2020, 1, 2)", "datetime.date(2021, 1, 5)", ("{r}.day * 1.0", "{r}.toordinal() * 1.0")),
    "slice": Kind("slice(0, 1)", "slice(0, 2)", ("sum([1.0, 2.0, 3.0][{r}])", "jnp.arange(3.0)[{r}].sum() + 1.0")),
    "type": Kind("float", "int", ("{r}(2.7)", "(1.0 if {r} is float else 2.0)")),
    "library function": Kind("jnp.sin", "jnp.cosh", ("{r}(x)", "{r}(0.5)")),
    "library module": Kind("math", "cmath", ("abs({r}.sqrt(4.0) + len({r}.__name__))",)),
    "identity": Kind("(FIRST, FIRST)", "(FIRST, list(FIRST))", ("(1.0 if {r}[0] is {r}[1] else 2.0)",)),
    "identity in a list": Kind("[FIRST, FIRST]", "[FIRST, list(FIRST)]", ("(1.0 if {r}[0] is {r}[1] else 2.0)",), ("{s}[1] = [1.0]", "{s}[:] = [[1.0], [1.0]]")),
    "itemgetter": Kind("operator.itemgetter(0)", "operator.itemgetter(1)", ("{r}([3.0, 4.0])",)),
    "bound builtin": Kind("BASE.get", "{{'a': 7.0}}.get", ("{r}('a')", "{r}('late', 2.0)"), ("BASE['a'] = 9.0; BASE['late'] = 4.0",)),
    "iterator of a list": Kind("LIST", "[5.0, 6.0]", ("sum(iter({r}))", "next(reversed({r}))", "sum(itertools.chain({r}, [1.0]))", "sum(a * b for a, b in zip({r}, {r}))"), ("LIST[0] = 9.0; LIST.append(4.0)",)),
    "exception": Kind("ValueError('ab', [1.0])", "ValueError('abc', [3.0])", ("{r}.args[1][0]", "len(str({r})) * 1.0"), ("{s}.args[1][0] = 9.0; {s}.args = ('abc', [9.0])",)),
    "missing global": Kind("1.0", "2.0", ("attempt(lambda: LATE, {r})", "(3.0 if 'LATE' in globals() else {r})", "globals().get('LATE', {r})"), ("globals().update(LATE=9.0)",)),
    "shadowed builtin": Kind("1.0", "2.0", ("len([1, 2, 3]) * {r}",), ("globals().update(len=lambda v: 9.0)",)),
    "path": Kind("pathlib.PurePath('a/b')", "pathlib.PurePath('a/bcd')", ("len(str({r})) * 1.0", "len({r}.parts) * 1.0 + len({r}.name)")),
    "simple queue": Kind("queued([1.0, 2.0])", "queued([5.0])", ("{r}.qsize() * 1.0", "{r}.queue[0]"), ("{s}.put(3.0); {s}.queue[0] = 9.0",)),
    "random state": Kind("random.Random(0)", "random.Random(1)", ("{r}.getstate()[1][0] % 1000 * 1.0",), ("{s}.seed(7)",)),
    "numpy generator": Kind("np.random.default_rng(0)", "np.random.default_rng(1)", ("{r}.bit_generator.state['state']['state'] % 1000 * 1.0",), ("{s}.random()",)),
    "ctypes": Kind("(ctypes.c_double * 2)(1.0, 2.0)", "(ctypes.c_double * 1)(5.0)", ("{r}[0]", "sum({r})"), ("{s}[0] = 9.0",)),
    "environment": Kind("'PURAX_FUZZ'", "'PURAX_FUZZ2'", ("len(os.environ.get({r}, 'ab')) * 1.0", "(1.0 if {r} in os.environ else 2.0)", "len(os.getenv({r}, 'ab')) * 1.0"), ("os.environ['PURAX_FUZZ'] = 'abcdef'",)),
    "set of objects": Kind("{{Plain(1.0)}}", "{{Plain(5.0)}}", ("sum(v.a for v in {r})", "sum(v.double() for v in {r})", "max(v.nested() for v in {r})"),
                           ("[v.__dict__.update(a=9.0) for v in {s}]", "Plain.double = lambda self: 7.0; Plain.shared = 8.0; [setattr(v, 'a', 6.0) for v in {s}]")),
    "keys that are objects": Kind("{{Plain(1.0): 2.0}}", "{{Plain(5.0): 2.0}}", ("sum(k.a * v for k, v in {r}.items())", "next(iter({r})).double()"), ("[setattr(k, 'a', 9.0) for k in {s}]",)),
    "subclass of float": Kind("Measure(1.0)", "Measure(5.0)", ("{r} * 1.0", "float({r})", "{r} * {r}.unit", "max({r}, 0.5) + 0.0"), ("{s}.unit = 9.0; Measure.__float__ = lambda self: 4.0; Measure.__mul__ = lambda self, v: 3.0; Measure.__gt__ = lambda self, v: False; Measure.__lt__ = lambda self, v: True",)),
    "subclass of str": Kind("Word('ab')", "Word('abcd')", ("len({r}) * 1.0", "ord({r}[-1]) * {r}.unit"),),
    "weak proxy": Kind("weakref.proxy(KEPT)", "weakref.proxy(KEPT2)", ("{r}.a", "{r}.double()", "getattr({r}, 'late', 2.0)"), ("KEPT.a = 9.0; KEPT.late = 3.0", "Plain.double = lambda self: 7.0; KEPT.a = 5.0; Plain.late = 4.0")),
    "weak set": Kind("weakref.WeakSet([KEPT])", "weakref.WeakSet([KEPT2])", ("sum(v.a for v in {r})", "len({r}) + sum(v.double() for v in {r})"), ("KEPT.a = 9.0", "{s}.add(KEPT2)")),
    "reference to what dies": Kind("weakref.ref(MORTAL[0])", "weakref.ref(KEPT2)", ("(1.0 if {r}() is None else 2.0)", "getattr({r}(), 'a', 3.5)"), ("MORTAL[0] = None",)),
    "Partial": Kind("px.tree_util.Partial(added, [1.0])", "px.tree_util.Partial(added, [5.0])", ("{r}(2.0)", "{r}.args[0][0]"), ("{s}.args[0][0] = 9.0", "added.__code__ = scaled.__code__; {s}.args[0][0] = 4.0")),
    "row of a record array": Kind("RECORDS[0]", "RECORDS[1]", ("{r}['a'] + 1.0", "{r}[0] + 2.0"), ("RECORDS['a'] = 9.0", "{s}['a'] = 8.0")),
    "pointer": Kind("ctypes.pointer(NUMBER)", "ctypes.pointer(ctypes.c_double(4.0))", ("{r}[0]", "{r}.contents.value"), ("NUMBER.value = 9.0", "{s}[0] = 8.0")),
    "cached property": Kind("Lazy(1.0)", "Lazy(5.0)", ("{r}.once", "{r}.table()", "{r}.power(2)"), ("{s}.once = 9.0; {s}.kept = 8.0; {s}.memo[2] = 7.0",
                            "{s}.__dict__.pop('once', None); {s}.kept = None; {s}.memo.clear(); {s}.a = 6.0")),
    "members of an enum": Kind("Color", "Shade", ("list({r})[0].value * 1.0", "{r}['RED'].value * 1.0", "sum(v.value for v in {r}.__members__.values()) * 1.0"), ("Color._member_map_['RED'] = Color.BLUE; Color.BLUE._value_ = 9; Color.RED._value_ = 8",)),
    "abstract class": Kind("Plain(1.0)", "Slots(1.0)", ("(1.0 if isinstance({r}, Abstract) else 2.0)", "(1.0 if issubclass(Plain, Abstract) else 2.0 * {r}.a)"), ("Abstract.register(Plain)", "Concrete.register(Plain)")),
    "protocol": Kind("Empty()", "Plain(1.0)", ("(1.0 if isinstance({r}, Doubling) else 2.0)",), ("Empty.double = lambda self: 1.0",)),
    "matched class": Kind("Matched(1.0, 4.0)", "Matched(5.0, 8.0)", ("matching({r})",), ("Matched.__match_args__ = ('b',)", "{s}.a = 9.0")),
    "evaluated": Kind("1.0", "2.0", ("eval('GLOBAL * 2') + {r}", "eval(CODE) * {r}", "{r} + eval('KEPT.a + LIST[0]')"), ("globals().update(GLOBAL=9.0, CODE='LIST[0] * 3'); KEPT.a = 5.0", "LIST[0] = 7.0; globals().update(GLOBAL=8.0)")),
    "getter": Kind("operator.attrgetter(NAMES[0])", "operator.attrgetter('shared')", ("{r}(KEPT)", "operator.attrgetter(NAMES[0])(KEPT)", "operator.methodcaller(METHOD)(KEPT)"), ("KEPT.a = 9.0", "KEPT.a = 5.0; Plain.double = lambda self: 4.0")),
    "function of a module by name": Kind("'scale'", "'rate'", ("attempt(lambda: getattr(MODULE, {r})(2.0), 3.0)", "attempt(lambda: vars(MODULE)[{r}](2.0), 4.0)"), ("MODULE.scale = lambda v: 9.0", "MODULE.rate = 8.0")),
    "lazy attribute of a module": Kind("MODULE", "MODULE2", ("getattr({r}, 'lazy', 1.0)", "attempt(lambda: {r}.lazy, 2.0)"), ("{s}.__getattr__ = lambda name: 9.0",)),
    "names of a class": Kind("Plain", "Other", ("len({r}.__name__) * 1.0", "len({r}.__doc__ or '') + 1.0", "len({r}.__subclasses__()) + 1.0"), ("{s}.__name__ = 'Renamed'; {s}.__doc__ = 'told'; KEPT.more = type('More', ({s},), {{}})",)),
    "names of a function": Kind("helper", "helper2", ("len({r}.__doc__ or '') + 1.0", "len({r}.__name__) * 1.0", "len({r}.__annotations__) + 1.0"), ("{s}.__doc__ = 'told'; {s}.__name__ = 'renamed'; {s}.__annotations__['v'] = int",)),
    "patched builtin": Kind("1.0", "2.0", ("abs(-3.0) * {r}", "attempt(lambda: UNHEARD_OF, {r})"), ("builtins.abs = lambda v: 9.0; builtins.UNHEARD_OF = 8.0",)),
    "patched library": Kind("1.0", "2.0", ("math.tau * {r}", "math.hypot(3.0, 4.0) * {r}"), ("math.tau = 9.0; math.hypot = lambda *v: 8.0",)),
    "setting": Kind("1.0", "2.0", ("np.get_printoptions()['precision'] * {r}", "sys.getswitchinterval() * 100.0 * {r}", "len(np.array2string(np.array([1 / 3]))) * {r}"), ("np.set_printoptions(precision=3); sys.setswitchinterval(0.05)",)),
    "logger": Kind("logging.getLogger('fuzzed')", "logging.getLogger('fuzzed.inner')", ("(1.0 if {r}.isEnabledFor(10) else 2.0)", "{r}.getEffectiveLevel() * 1.0"), ("logging.getLogger('fuzzed').setLevel(10)",)),
    "lock": Kind("threading.Lock()", "threading.Lock()", ("(1.0 if {r}.locked() else 2.0)",), ("{s}.acquire()",)),
    "flags of an array": Kind("ARRAY", "frozen(ARRAY.copy())", ("(1.0 if {r}.flags.writeable else 2.0)", "{r}.strides[0] * 1.0"), ("{s}.flags.writeable = False",)),
    "containers of a library": Kind("stacked(1.0)", "stacked(5.0)", ("{r}['a']['a']['a']['a']['a']",), ("{s}['a']['a']['a']['a']['a'] = 9.0",)),
    "two names at once": Kind("1.0", "2.0", ("abs(-3.0) * {r}",), ("globals().pop('SPARE'); globals().update(abs=lambda v: 9.0)",)),
    "subclass of UserDict": Kind("UserMapped(a=1.0, b=2.0)", "UserMapped(a=3.0)", (*_MAPPING[:6], "{r}.data['a']", "{r}.total()"), _MAPPING_CHANGES[:3]),
    "subclass of UserList": Kind("UserListed([1.0, 2.0])", "UserListed([5.0, 9.0])", _SEQUENCE[:6], ("{s}.append(9.0); {s}[0] = 4.0", "{s}.data[:] = [6.0]")),
    "subclass of ChainMap": Kind("UserChain({{}}, {{'a': 1.0}})", "UserChain({{'a': 3.0}})", _MAPPING[:5], ("{s}.maps[1]['a'] = 9.0", "{s}['a'] = 8.0")),
    "metaclass": Kind("Meta('M', (), {{'table': {{'a': 1.0}}}})", "Meta('M', (), {{'table': {{'a': 5.0}}}})", ("{r}.a", "{r}.table['a']", "len({r}) * 1.0", "{r}[2.0]", "getattr({r}, 'a')"),
                      ("{s}.table['a'] = 9.0", "Meta.by = 7.0; {s}.table['a'] = 4.0", "{s}.a = 6.0; {s}.table['b'] = 1.0; {s}.table['a'] = 3.0")),
    "subscripted class": Kind("Subscripted", "Subscripted", ("{r}['a']",), ("{s}.table['a'] = 9.0", "{s}.__class_getitem__ = classmethod(lambda cls, key: 8.0)")),
    "answers errors of its own": Kind("Raising({{'a': 1.0}})", "Raising({{'a': 5.0}})", ("{r}.a",), ("{s}.__dict__['table']['a'] = 9.0",)),
    "module by a computed name": Kind("'fuzzed'", "'fuzzed'", ("importlib.import_module({r} + '_module').rate", "sys.modules[{r} + '_module'].rate", "__import__({r} + '_module').rate"),
                                      ("MODULE.rate = 9.0", "sys.modules['fuzzed_module'] = MODULE2")),
    "patched class of a library": Kind("fractions.Fraction(1, 2)", "fractions.Fraction(1, 3)", ("float({r})", "float({r} + 1)", "({r} > 5) + 1.0", "float(fractions.Fraction(3, 4)) * ({r} != 7)"),
                                       ("{s}; fractions.Fraction.__float__ = lambda self: 9.0; fractions.Fraction.__add__ = lambda a, b: 8.0; fractions.Fraction.__gt__ = fractions.Fraction.__ne__ = lambda a, b: 6",)),
    "patched class of a library, derived": Kind("UserMapped(a=1.0)", "UserMapped(a=2.0)", ("len({r}) * 1.0", "{r}['a']"),
                                                ("{s}; collections.UserDict.__len__ = lambda self: 9; collections.UserDict.__getitem__ = lambda self, key: 8.0",)),
    "patched purax": Kind("1.0", "2.0", ("jnp.cosh({r})", "px.nn.relu({r})", "getattr(px.nn, 'relu')({r})", "px.lax.add(1.0, {r})"),
                          ("jnp.cosh = px.nn.relu = lambda v: 9.0; px.lax.add = lambda a, b: 8.0",)),
    "directory": Kind("1.0", "2.0", ("len(os.getcwd()) * {r}", "len(os.path.abspath('a')) * {r}", "len(str(pathlib.Path('a').absolute())) * {r}", "eval('len(os.getcwd())') * {r}"), ("os.chdir('/usr/lib')",)),
    "iterator over an array": Kind("np.nditer(ARRAY)", "np.nditer(ARRAY * 2)", ("float({r}.operands[0][0])",), ("ARRAY[:] = 9.0",)),
    "address and identity": Kind("[1.0]", "[1.0]", ("(1.0 if id({r}) == id(FIRST) else 2.0)", "(1.0 if np.shares_memory(ARRAY, VIEWED) else 2.0) * len({r})"), ("globals().update(VIEWED=ARRAY[:]); ALIAS.append(2.0)",)),
    "address": Kind("1.0", "2.0", ("ctypes.c_double.from_address(ctypes.addressof(NUMBER)).value * {r}", "ctypes.cast(ctypes.c_void_p(ADDRESS), ctypes.POINTER(ctypes.c_double))[0] * {r}",
                    "ctypes.string_at(ADDRESS, 8)[7] * {r}"), ("NUMBER.value = 900.0",)),
}  # fmt: skip

# Where the state is kept: what sets it up from `{made}`, how it is read, and how it is assigned.
PLACES: dict[str, tuple[str, str, str]] = {
    "global": ("STATE = {made}", "STATE", "STATE = {other}"),
    "global dict": ("SPACE = {{'s': {made}}}", "SPACE['s']", "SPACE['s'] = {other}"),
    "global list": ("ROW = [{made}]", "ROW[0]", "ROW[0] = {other}"),
    "attribute": ("HOLDER = types.SimpleNamespace(s={made})", "HOLDER.s", "HOLDER.s = {other}"),
    "attribute of an object": ("KEEPER = Plain(0.0); KEEPER.s = {made}", "KEEPER.s", "KEEPER.s = {other}"),
    "class": ("class Holding: pass\nHolding.s = {made}", "Holding.s", "Holding.s = {other}"),
    "inherited": ("class Above: pass\nclass Below(Above): pass\nAbove.s = {made}\nBELOW = Below()", "BELOW.s", "BELOW.s = {other}"),
    "module": ("SOME = types.ModuleType('some'); SOME.s = {made}", "SOME.s", "SOME.s = {other}"),
    "nested": ("DEEP = {{'k': [types.SimpleNamespace(v=({made},))]}}", "DEEP['k'][0].v[0]", "DEEP['k'][0].v = ({other},)"),
    "function attribute": ("def owner(): return owner.s\nowner.s = {made}", "owner()", "owner.s = {other}"),
    "property": ("class Propertied:\n    @property\n    def s(self): return self._s\nPROPERTY = Propertied(); PROPERTY._s = {made}", "PROPERTY.s", "PROPERTY._s = {other}"),
    "helper": ("STATE = {made}\ndef get(): return STATE", "get()", "STATE = {other}"),
    "helper of a helper": ("STATE = {made}\ndef get(): return STATE\nclass Getting:\n    def get(self): return self.inner()\n    def inner(self): return get()\nGETTING = Getting()", "GETTING.get()", "STATE = {other}"),
    "lambda in a dict": ("STATE = {made}\nTABLES = {{'get': lambda: STATE}}", "TABLES['get']()", "STATE = {other}"),
    "default": ("STATE = {made}\ndef given(v=STATE): return v", "given()", "given.__defaults__ = ({other},)"),
    "keyword default": ("def given(*, v={made}): return v", "given()", "given.__kwdefaults__['v'] = {other}"),
    "partial": ("def same(v): return v\nHELD = functools.partial(same, {made})", "HELD()", "HELD = functools.partial(same, {other})"),
    "slots": ("class Slotted:\n    __slots__ = ('s',)\nSLOT = Slotted(); SLOT.s = {made}", "SLOT.s", "SLOT.s = {other}"),
    "context": ("CONTEXT = contextvars.ContextVar('CONTEXT'); CONTEXT.set({made})", "CONTEXT.get()", "CONTEXT.set({other})"),
    "globals()": ("STATE = {made}", "globals()['STATE']", "STATE = {other}"),
    "getattr": ("HOLDER = types.SimpleNamespace(state={made}); KEY = 'state'", "getattr(HOLDER, KEY)", "HOLDER.state = {other}"),
    "another name": ("HOLDER = types.SimpleNamespace(one={made}, two={other}); KEY = 'one'", "getattr(HOLDER, KEY)", "KEY = 'two'"),
    "another key": ("SPACE = {{'one': {made}, 'two': {other}}}; KEY = 'one'", "SPACE[KEY]", "KEY = 'two'"),
    "deque": ("LINE = collections.deque([{made}])", "LINE[0]", "LINE[0] = {other}"),
    "static method": ("class Static:\n    s = {made}\n    @staticmethod\n    def get(): return Static.s", "Static.get()", "Static.s = {other}"),
    "iterated": ("ROW = [{made}]", "[v for v in ROW][0]", "ROW[0] = {other}"),
    "with": ("STATE = {made}\n@contextlib.contextmanager\ndef giving():\n    yield STATE\ndef get():\n    with giving() as v: return v", "get()", "STATE = {other}"),
    "generator": ("STATE = {made}\ndef giving():\n    yield STATE", "next(giving())", "STATE = {other}"),
}  # fmt: skip
_CLOSURE = "def outer():\n    state = {made}\n    def g(x): return x * ({read})\n    def assign():\n        nonlocal state\n        state = {other}\n    return g, assign, lambda: state\ng, assign, held = outer()"

NESTINGS = (
    "J(g)", "J(lambda x: g(x) + 1.0)", "J(lambda x: J(g)(x) + 1.0)", "J(J(g))", "J(px.grad(g))", "J(px.value_and_grad(g))",
    "J(lambda x: px.grad(lambda y: g(y) ** 2)(x))", "J(lambda x: px.vmap(g)(x * jnp.ones(2)))", "J(px.vmap(J(g)))",
    "J(lambda x: px.lax.scan(lambda c, _: (c + g(x), None), x, None, length=2)[0])", "J(functools.partial(lambda k, x: g(x) * k, 2.0))",
    "J(lambda x: px.lax.cond(x > 0, g, lambda y: y, x))", "J(Caller(g))", "J(Caller(g).call)", "J(decorated(g))", "J(px.checkpoint(g))",
    "J(lambda x: px.lax.fori_loop(0, 2, lambda i, c: c + g(x), x))", "J(lambda x, h=g: h(x))", "J(lambda x: px.jvp(g, (x,), (x,))[1])",
    "J(lambda x: sum(map(g, [x, x])))", "J(lambda x: px.tree.map(g, {'a': x})['a'])", "J(lambda x: [h(x) for h in [g]][0])",
    "J(lambda x: J(px.grad(J(g)))(x))", "J(px.jacfwd(g))", "(lambda h: lambda x: h(x))(J(g))", "J(functools.partial(J(g)))", "J(decorated(J(decorated(g))))",
    "J(lambda x: (lambda: g(x))())", "J(lambda x: Caller(g)(x))", "J(lambda x: px.lax.switch(0, [g, g], x))", "J(lambda x: px.lax.map(g, x * jnp.ones(2)))",
)  # fmt: skip

PREAMBLE = '''
import abc, array, builtins, cmath, collections, contextlib, contextvars, copy, ctypes, dataclasses, datetime, decimal, enum, fractions, functools, io
import importlib, inspect, itertools, logging, math, operator, os, pathlib, pickle, queue, random, sqlite3, sys, threading, types, typing, weakref, zlib
import hashlib, xml.etree.ElementTree
import numpy as np, scipy.sparse
import purax as px, purax.numpy as jnp
NAMES, METHOD, CODE, SPARE = ["a"], "double", "GLOBAL + LIST[0]", 0
TABLE = {"sin": 2.0, "cosh": 5.0}
Vsin, Vcosh = 3.0, 7.0
BASE = {"a": 1.0, "b": 2.0}
BUFFER = bytearray(b"ab")
ARRAY = np.array([1.0, 2.0, 3.0], np.float32)
LIST, FIRST, GLOBAL = [1.0, 2.0], [1.0], 3.0
VARIABLE = contextvars.ContextVar("VARIABLE", default=1.0); VARIABLE2 = contextvars.ContextVar("VARIABLE2", default=4.0)
LOCAL = threading.local(); LOCAL.a = 1.0
MODULE = types.ModuleType("fuzzed_module"); MODULE.rate = 2.0; MODULE.table = {"a": 1.0}; MODULE.scale = lambda v: v * MODULE.rate
MODULE2 = types.ModuleType("fuzzed_module2"); MODULE2.rate = 5.0; MODULE2.table = {"a": 3.0}; MODULE2.scale = lambda v: v * 11.0
sys.modules["fuzzed_module"] = MODULE; sys.modules["fuzzed_module2"] = MODULE2
NUMBER = ctypes.c_double(1.0); ADDRESS = ctypes.addressof(NUMBER); VIEWED = ARRAY.copy()
RECORDS = np.array([(1.0, 2.0), (3.0, 4.0)], [("a", float), ("b", float)])
def attempt(function, default):
    try: return function()
    except Exception: return default
def frozen(a):
    a.flags.writeable = False
    return a
def table_of(number):
    made = sqlite3.connect(":memory:")
    made.execute("create table t (a)"); made.execute("insert into t values (?)", (number,))
    return made
def queued(items):
    made = queue.Queue()
    for item in items: made.put(item)
    return made
class Plain:
    shared = 3.0
    def __init__(self, a): self.a = a; self.items = [a]; self.inner = types.SimpleNamespace(late=a)
    def double(self, by=2.0): return self.a * by
    @property
    def triple(self): return self.a * 3.0
    @staticmethod
    def static(): return Plain.shared
    @classmethod
    def of_class(cls): return cls.shared * 2.0
    def nested(self): return self.double() + self.shared
    def __call__(self): return self.a + 1.0
    def __add__(self, other): return self.a + other
    def __getitem__(self, key): return self.items[0]
    def __len__(self): return int(self.a)
class Empty: pass
class Other(Plain):
    shared = 6.0
    def double(self, by=2.0): return self.a * by * 5.0
class Slots:
    __slots__ = ("a", "b")
    def __init__(self, a): self.a = a
@dataclasses.dataclass(order=True)
class Ordered:
    a: float
@dataclasses.dataclass
class Data:
    a: float
    b: float = 2.0
    listed: list = dataclasses.field(default_factory=lambda: [3.0])
class Descriptor:
    scale = 1.0
    def __get__(self, own, kind=None): return own._value * self.scale
class Described:
    value = Descriptor()
    def __init__(self): self._value = 2.0
class Dynamic:
    def __init__(self, **table): self.table = table
    def __getattr__(self, name):
        try: return self.__dict__["table"][name]
        except KeyError: raise AttributeError(name) from None
    def __getitem__(self, key): return self.table[key]
class Listed(list):
    extra = 2.0
class Mapped(dict):
    def __getattr__(self, name):
        try: return self[name]
        except KeyError: raise AttributeError(name) from None
class Pair(typing.NamedTuple):
    first: float
    second: list
class Color(enum.Enum):
    RED = 1
    BLUE = 4
class Shade(enum.Enum):
    RED = 5
class Measure(float):
    unit = 2.0
class Word(str):
    unit = 2.0
class Lazy:
    def __init__(self, a): self.a = a; self.kept = None; self.memo = {}
    @functools.cached_property
    def once(self): return self.a * 2.0
    def table(self):
        if self.kept is None: self.kept = self.a * 3.0
        return self.kept
    def power(self, n):
        if n not in self.memo: self.memo[n] = self.a ** n + 1.0
        return self.memo[n]
class Abstract(abc.ABC): pass
class Concrete(Abstract): pass
@typing.runtime_checkable
class Doubling(typing.Protocol):
    def double(self): ...
class Matched:
    __match_args__ = ("a",)
    def __init__(self, a, b): self.a, self.b = a, b
def matching(v):
    match v:
        case Matched(w): return w
        case _: return 0.5
class UserMapped(collections.UserDict):
    def total(self): return sum(self.values())
class UserListed(collections.UserList): pass
class UserChain(collections.ChainMap): pass
class Meta(type):
    by = 2.0
    def __getattr__(cls, name): return cls.table[name]
    def __len__(cls): return len(cls.table)
    def __getitem__(cls, key): return cls.table["a"] * cls.by * key
class Subscripted:
    table = {"a": 2.0}
    def __class_getitem__(cls, key): return cls.table[key]
class Raising:
    def __init__(self, table): self.__dict__["table"] = table
    def __getattr__(self, name): return self.__dict__["table"][name]
def stacked(a):
    for _ in range(5): a = collections.UserDict(a=a)
    return a
def helper(v, by=2.0): return v * by
def helper2(v, by=3.0): return v + by + 10.0
def keyed(v, *, by=2.0): return v * by
def keyed2(v, *, by=2.0): return v * by + 20.0
def reading(v): return v * GLOBAL
def added(items, y): return sum(items) + y
def scaled(items, y): return sum(items) * y * y
def closing(start=1.0):
    held = start
    def get(v): return v * held
    def assign(v):
        nonlocal held
        held = v
    return get, assign
@functools.lru_cache
def memo(): return GLOBAL * 2.0
@functools.lru_cache
def memo2(): return 5.0
@functools.singledispatch
def dispatching(v): return 4.0
def imported():
    from fuzzed_module import rate
    return rate
KEPT, KEPT2 = Plain(1.0), Plain(6.0)
MORTAL = [Plain(1.0)]
def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs): return function(*args, **kwargs) * 1.0
    return wrapper
class Caller:
    def __init__(self, function): self.function = function
    def __call__(self, x): return self.function(x)
    def call(self, x): return self.function(x)
'''  # fmt: skip
_COMPILED = compile(PREAMBLE, "<captured state>", "exec")


class Program(NamedTuple):
    """The parts of one program: what makes the state and the function `g`, the compiled function, and the change."""

    setup: str
    function: str
    change: str

    def __str__(self) -> str:
        return (
            f"{self.setup}\nf = {self.function}  # J = px.jit, or nothing for plain Python\nf(1.5); f(1.5)\n{self.change}\n"
            "f(1.5)"
        )


def generate(rng: random.Random, kind: Kind | None = None) -> Program:
    """One random program."""
    kind = KINDS[rng.choice(list(KINDS))] if kind is None else kind
    read = rng.choice(kind.reads)
    nesting = rng.choice(NESTINGS)
    made, other = kind.made.format(), kind.other.format()
    in_place = bool(kind.changes) and rng.random() < 0.7
    if rng.random() < 0.2:
        setup = _CLOSURE.format(made=made, other=other, read=read.format(r="state"))
        change = "STATE = held()\n" + rng.choice(kind.changes).format(s="STATE") if in_place else "assign()"
        return Program(setup, nesting, change)
    place = rng.choice(list(PLACES))
    if made.startswith(("J(", "px.")) and place in ("class", "inherited", "static method"):
        place = "global"  # compiled functions in classes are methods
    start, expression, assign = PLACES[place]
    start = start.format(made=made, other=other)
    setup = f"{start}\ndef g(x): return x * ({read.format(r=expression)})"
    if in_place:
        return Program(setup, nesting, f"ALIAS = {expression}\n" + rng.choice(kind.changes).format(s="ALIAS"))
    return Program(setup, nesting, assign.format(made=made, other=other))


def results(program: Program, compiles: bool) -> list[Any]:
    """What the function of a program gives before and after the change; an exception where it raises one."""
    import purax as px

    _reset()
    module = sys.modules["fuzzed"] = types.ModuleType("fuzzed")
    space = vars(module)
    space["J"] = px.jit if compiles else lambda function: function
    exec(_COMPILED, space)
    exec(compile(program.setup, "<state>", "exec"), space)
    function = eval(program.function, space)
    found: list[Any] = []
    before = 1 + len(str(program)) % 3  # what is compared is made in steps, by how often it was called
    for step in range(before + 3):
        if step == before:
            exec(compile(program.change, "<change>", "exec"), space)
        try:
            found.append(
                np.concatenate([np.ravel(np.asarray(x, float)) for x in px.tree.leaves(function(1.5))])
            )
        except Exception as error:
            found.append(error)
    _reset()
    return found


_OWN = (abs, math.tau, math.hypot, sys.getswitchinterval(), os.getcwd())


def _patched() -> list[tuple[Any, str, Any]]:
    """What programs replace in libraries."""
    import purax as px

    dunders = ("__float__", "__add__", "__gt__", "__ne__")
    found: list[tuple[Any, str, Any]] = [(fractions.Fraction, x, None) for x in dunders]
    found += [(collections.UserDict, "__len__", None), (collections.UserDict, "__getitem__", None)]
    found += [(px.numpy, "cosh", None), (px.nn, "relu", None), (px.lax, "add", None)]
    return [(owner, name, vars(owner).get(name)) for owner, name, _ in found]


_LIBRARIES: list[tuple[Any, str, Any]] = []


def _reset() -> None:
    """Puts back the state of the process that programs change."""
    os.environ.pop("PURAX_FUZZ", None)
    vars(builtins).pop("UNHEARD_OF", None)
    builtins.abs, math.tau, math.hypot = _OWN[:3]  # type: ignore[misc]
    sys.setswitchinterval(_OWN[3])
    os.chdir(_OWN[4])
    np.set_printoptions(precision=8)
    logging.getLogger("fuzzed").setLevel(40)
    if not _LIBRARIES:
        _LIBRARIES.extend(_patched())
    for owner, name, value in _LIBRARIES:
        if value is None:
            if name in vars(owner):
                delattr(owner, name)
        elif vars(owner)[name] is not value:
            setattr(owner, name, value)


def failure(program: Program) -> str | None:
    """What is wrong with the compiled function of a program; None if it is as good as plain Python."""
    import decimal

    with warnings.catch_warnings(), decimal.localcontext():
        warnings.simplefilter("ignore")
        try:
            expected = results(program, False)
        except Exception:  # no program
            return None
        if any(isinstance(x, Exception) for x in expected):
            return None
    with warnings.catch_warnings(), decimal.localcontext():
        warnings.simplefilter("ignore")
        found = results(program, True)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        if isinstance(a, Exception):
            return f"{program}\n# call {i} raises {type(a).__name__}: {str(a)[:200]}"
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-4, equal_nan=True):
            return f"{program}\n# call {i} gives {a}, plain Python {b}"
    return None


def run(seed: int) -> Iterator[str | None]:
    """Tries random programs; yields those that fail, as text."""
    rng = random.Random(seed)
    while True:
        yield failure(generate(rng))
