"""Idioms with objects of Python's library, of NumPy and SciPy: what is in them is told in the most different ways.

The form is that of `python_idioms`: how an object is made, ways to change it, and a number that tells what is in it.
"""

from __future__ import annotations

HEADER = """\
import abc, argparse, array, asyncio, collections, configparser, contextvars, ctypes, decimal, functools, graphlib
import hashlib, io, itertools, logging, mmap, pickle, queue, re, sqlite3, string, threading, types, unittest.mock
import weakref, zlib
import xml.etree.ElementTree as ElementTree
import numpy as np
import scipy.sparse
"""

# Each line: the object `o` (`p` and `q` help), the changes, and the number that tells what is in it.
LIBRARY_IDIOMS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("o@ = threading.local()", "o@.v = 1.0"), ("o@.v = 2.0", "o@.w = 1.0"), "o@.v + len(vars(o@))"),
    (("class O@(threading.local): v = 1.0", "o@ = O@()"), ("o@.v = 2.0",), "o@.v"),
    (
        ("class O@(decimal.Context): extra = 1.0", "o@ = O@(prec=5)"),
        ("o@.prec = 2", "o@.extra = 3.0"),
        "float(o@.divide(1, 3)) + o@.extra",
    ),
    (
        ("class O@(ElementTree.Element): extra = 1.0", "o@ = O@('a')"),
        ("o@.set('k', 'v')", "o@.extra = 3.0"),
        "len(o@.attrib) + o@.extra",
    ),
    (("o@ = threading.Event()",), ("o@.set()", "o@.clear()"), "float(o@.is_set())"),
    (("o@ = threading.Lock()",), ("o@.acquire(blocking=False)",), "float(o@.locked())"),
    (("o@ = threading.RLock()",), ("o@.acquire()",), "float(o@._is_owned())"),
    (("o@ = threading.Semaphore(9)",), ("o@.acquire(blocking=False)",), "float(o@._value)"),
    (("o@ = queue.SimpleQueue()",), ("o@.put(1.0)",), "float(o@.qsize())"),
    (("o@ = queue.Queue()", "o@.put(2.0)"), ("o@.put(#)",), "float(o@.qsize())"),
    (("o@ = asyncio.Queue()",), ("o@.put_nowait(1.0)",), "float(o@.qsize())"),
    (
        ("o@ = ElementTree.Element('a')", "o@.text = 'x'"),
        ("ElementTree.SubElement(o@, 'b')", "o@.text = 'long'", "o@.set('k', 'v')"),
        "float(len(o@) + len(o@.text) + len(o@.attrib))",
    ),
    (("o@ = hashlib.md5(b'a')",), ("o@.update(b'b')",), "float(o@.digest()[0])"),
    (("o@ = decimal.Context(prec=5)",), ("o@.prec = 2",), "float(o@.divide(1, 3))"),
    (("o@, p@ = zlib.compressobj(), []",), ("p@.append(o@.compress(b'abc'))",), "float(len(o@.flush()))"),
    (("p@ = io.BytesIO()", "o@ = io.TextIOWrapper(p@)"), ("o@.write('ab')",), "float(o@.tell())"),
    (("o@ = io.BufferedReader(io.BytesIO(b'abcdefgh' * 9))",), ("o@.read(2)",), "float(o@.read(1)[0])"),
    (("o@ = unittest.mock.Mock(return_value=1.0)",), ("o@(1)",), "float(o@.call_count)"),
    (("o@ = unittest.mock.MagicMock()", "o@.v = 1.0"), ("o@.v = 2.0",), "o@.v"),
    (("o@ = mmap.mmap(-1, 8)",), ("o@[0] = 9", "o@.seek(3)"), "float(o@[0] + o@.tell())"),
    (
        ("p@, q@ = ctypes.c_int(1), ctypes.c_int(2)", "o@ = ctypes.pointer(p@)"),
        ("o@.contents = q@",),
        "o@[0]",
    ),
    (("o@ = ctypes.c_double(1.0)",), ("o@.value = 4.0",), "o@.value"),
    (
        ("o@ = contextvars.copy_context()", "p@ = contextvars.ContextVar('v')"),
        ("o@.run(p@.set, 3.0)",),
        "len(o@)",
    ),
    (
        ("o@ = configparser.ConfigParser()", "o@['a'] = {'k': '1'}"),
        ("o@['a']['k'] = '22'",),
        "float(o@['a']['k'])",
    ),
    (("o@ = graphlib.TopologicalSorter()",), ("o@.add('c', 'b')",), "float(len(o@._node2info))"),
    (("o@ = functools.singledispatch(lambda v: 1.0)",), ("o@.register(int, lambda v: 2.0)",), "o@(3)"),
    (("o@ = functools.partial(max, 1.0)", "o@.tag = 1.0"), ("o@.tag = 2.0",), "o@.tag"),
    (("o@ = functools.partial(max, 1.0)",), ("o@.__setstate__((min, (0.5,), {}, {}))",), "o@(2.0)"),
    (
        ("o@ = logging.Logger('own')",),
        ("o@.setLevel(30)", "o@.addHandler(logging.NullHandler())"),
        "float(o@.level + len(o@.handlers))",
    ),
    (
        ("class P@: pass", "p@ = P@()", "o@ = weakref.finalize(p@, len, ())"),
        ("o@.detach()",),
        "float(o@.alive)",
    ),
    (("class A@: k = 1.0", "class B@: k = 2.0", "class O@(A@): pass"), ("O@.__bases__ = (B@,)",), "O@.k"),
    (("class O@:\n    def __len__(self): return 1",), ("O@.__len__ = lambda self: 5",), "float(len(O@()))"),
    (
        ("class O@(string.Template): pass", "o@ = O@('$a')"),
        ("o@.template = '$a$a'",),
        "float(len(o@.substitute(a='xy')))",
    ),
    (("o@ = string.Formatter()", "o@.used = 1.0"), ("o@.used = 2.0",), "o@.used"),
    (
        ("o@ = OSError(2, 'a')",),
        ("o@.errno = 5", "o@.__cause__ = KeyError()"),
        "float(o@.errno) + (o@.__cause__ is None)",
    ),
    (("o@ = re.compile('a').scanner('aaaaaaaaa')",), ("o@.search()",), "float(o@.search().start())"),
    (
        ("o@ = pickle.Unpickler(io.BytesIO(b''.join(pickle.dumps(i) for i in range(60))))",),
        ("o@.load()",),
        "float(o@.load())",
    ),
    (
        ("o@ = sqlite3.connect(':memory:')", "o@.execute('create table t (a)')"),
        ("o@.execute('insert into t values (1)')",),
        "float(len(o@.execute('select * from t').fetchall()))",
    ),
    (("o@ = np.random.PCG64(1)",), ("o@.random_raw()",), "float(o@.random_raw() % 1000)"),
    (("o@ = np.random.SeedSequence(1)",), ("o@.spawn(1)",), "float(o@.n_children_spawned)"),
    (("o@ = np.poly1d([1.0, 2.0])",), ("o@[0] = 7.0",), "float(o@(1.0))"),
    (("o@ = np.nditer(np.arange(9.0))",), ("o@.iternext()",), "float(o@[0])"),
    (("o@ = np.ndenumerate(np.arange(60.0))",), ("next(o@)",), "float(next(o@)[1])"),
    (("o@ = np.zeros((2, 3))",), ("o@.shape = (3, 2)",), "float(o@.shape[0])"),
    (("o@ = np.zeros(2)",), ("o@.flags.writeable = False",), "float(o@.flags.writeable)"),
    (("o@ = np.zeros(2)",), ("o@.dtype = np.int64",), "float(o@.dtype.kind == 'i')"),
    (("o@ = np.zeros(2)",), ("o@.resize(4, refcheck=False)",), "float(o@.size)"),
    (
        ("class O@(np.ndarray): pass", "o@ = np.zeros(2).view(O@)", "o@.info = 1.0"),
        ("o@.info = 2.0",),
        "o@.info",
    ),
    (("o@ = np.ma.array([1.0, 2.0, 3.0])",), ("o@[0] = np.ma.masked",), "float(o@.sum())"),
    (("o@ = scipy.sparse.lil_matrix((2, 2))",), ("o@[0, 1] = 3.0",), "float(o@.sum())"),
    (("o@ = scipy.sparse.csr_matrix(np.eye(2))",), ("o@.data[0] = 3.0",), "float(o@.sum())"),
    (("o@ = ['a', 'b']",), ("o@[0] = 'long'",), "float(len('-'.join(o@)))"),
)
