"""The ways through a function: where the two sides of a traced branch leave state that cannot be one value, the
function is done once for each side.

A `Walk` is one function being traced. It numbers the traced decisions that are not inside of a recorded block. When
something cannot be decided (a list that one side made longer, a variable that is a string on one side and another one
on the other, an object that is one of two), a `Fork` names the decision that it comes from. The function is then done
again from its beginning, twice, with that decision taken as true and as false, each as a block of a `cond`; so every
object is what plain Python makes of it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.callbacks.error_if import error_if
from purax.core import source, trace
from purax.core.jaxpr import Literal, Var
from purax.core.source import located
from purax.primitives.elementwise.logic import not_p
from purax.purity.ownership import file_is_library, is_user_code
from purax.python_control_flow.function_source import is_tried, refusals
from purax.python_control_flow.heap import Heap, running
from purax.python_control_flow.objects import NotRestorable, attributes

_MOST_PATHS = 48  # through one function
# Decisions in the same way at one line, of a function without another end; the second, of one that calls itself twice.
_MOST_SAME = (12, 8)
_MOST_FORKS = 64  # of a function and the loops in it
_MOST_DECISIONS = 1000  # on all of them, after which no further way is taken
_MOST_ASKED = 20_000  # after which a function that asks again and again is given up
_MOST_BOUNDED = 600  # the same, of such a function
_MOST_SECONDS = 3.0  # of processor time, after which no further way is taken; twice that, and it is given up


class Fork(BaseException):
    """A walk cannot go on unless the decision of a number is taken; `error` is what to raise if it cannot be."""

    def __init__(self, walk: Walk, number: int, error: Exception):
        super().__init__(str(error))
        self.walk, self.number, self.error = walk, number, error


class Redo(BaseException):
    """A walk begins again, since it knows now of a loop that is not to be recorded; `error` is why not."""

    def __init__(self, walk: Walk, error: Exception):
        super().__init__(str(error))
        self.walk, self.error = walk, error


class Failure(BaseException):
    """What cannot be traced; no `except` of the user's is to take it for an error of the function itself."""

    def __init__(self, error: Exception):
        super().__init__(str(error))
        self.error = error


class Walk:
    """A function that is being traced, and the decisions on the way through it.

    Attributes:
        decisions: by number, those that are taken.
        flags: by number, the traced values that decide.
        open: the numbers of the branches whose blocks are being recorded, the outermost first.
        attempt: counts how often the function was begun.
    """

    def __init__(self, heap: Heap):
        self.heap = heap
        self.trace: Any = trace.current.trace
        self.decisions: dict[int, bool] = {}
        self.flags: list[Any] = []
        self.meanings: dict[int, tuple[Any, bool]] = {}  # of the conditions that were decided
        self.open: list[int] = []
        self.attempt = 0
        self.forks = 0
        self.pending: Fork | None = None
        self.fixed: list[Fixed] = []
        self.chosen: dict[int, np.ndarray] = {}  # the arrays that were fixed on any way
        self.inherited: list[Inherited] = []
        self.choices: dict[int, tuple[Any, Origin]] = {}  # by the id of a variable, what chose its value
        self.arrays: dict[int, tuple[Any, Origin]] = {}  # the same, of NumPy arrays
        self.failure: Failure | None = None
        self.taken: list[tuple[Any, bool]] = []  # the decisions so far, and the lines of the user's
        self.unrolled: dict[str, Exception] = {}  # the loops whose state cannot be carried, and why

    def begin(self, decisions: dict[int, bool]) -> None:
        self.trace = trace.current.trace
        self.decisions, self.flags, self.open = decisions, [], []
        self.meanings.clear()
        self.pending = None
        self.taken = []
        self.fixed, self.inherited = [], []
        self.choices.clear()
        self.arrays.clear()
        self.attempt += 1

    def number(self, flag: Any) -> int | None:
        """The number of a decision that is due now; None inside of a block, or of another trace."""
        if self.open or trace.current.trace is not self.trace:
            return None
        self.flags.append(flag)
        return len(self.flags) - 1

    def decided(self, number: int) -> bool | None:
        """What was decided about a condition, under this number or earlier."""
        if number in self.decisions or not self.decisions:
            return self.decisions.get(number)
        condition, is_negated = meaning(self.flags[number])
        if condition is None:
            return None
        for earlier, choice in self.decisions.items():
            if earlier < number:
                if earlier not in self.meanings:
                    self.meanings[earlier] = meaning(self.flags[earlier])
                same, was_negated = self.meanings[earlier]
                if same == condition:
                    return choice != (is_negated != was_negated)
        return None

    def fork(self, number: int, error: Exception) -> Fork:
        self.pending = Fork(self, number, error)
        return self.pending


def meaning(flag: Any, depth: int = 6) -> tuple[Any, bool]:
    """What a condition computes, equal for those that compute the same, and whether it is the negation of that."""
    owner: Any = flag.owner
    if not hasattr(owner, "makers"):
        return None, False
    makers = owner.makers()

    def describe(atom: Any, depth: int) -> Any:
        made_by = makers.get(atom) if isinstance(atom, Var) else None
        is_simple = made_by is not None and all(isinstance(x, _SIMPLE) for x in made_by.params.values())
        if made_by is None or not is_simple or not depth or made_by.effects or len(made_by.outvars) != 1:
            return ("value", repr(atom.val), atom.aval) if isinstance(atom, Literal) else id(atom)
        params = tuple(sorted((name, repr(value)) for name, value in made_by.params.items()))
        return (made_by.primitive, params, *(describe(x, depth - 1) for x in made_by.invars))

    found, is_negated = describe(flag.variable, depth), False
    while isinstance(found, tuple) and found[0] is not_p:
        found, is_negated = found[2], not is_negated
    return found, is_negated


_SIMPLE = (bool, int, float, str, tuple, type(None), np.dtype)


class _Walks(threading.local):
    """The walks of this thread, the innermost last."""

    def __init__(self) -> None:
        self.open: list[Walk] = []
        self.forks = 0
        self.asked = 0
        self.began = 0.0
        self.rows: list[Any] = []  # weak references to iterators over arrays
        self.is_exhausted = False  # whether there were more ways than may be taken
        self.most_same = 0  # how often a decision may be taken in the same way; 0: without a bound
        self.holds_undefined = False  # whether a container may hold what has no value
        self.sides: list[tuple[Any, bool]] = []  # of the blocks that are being recorded, if that is so

    def seconds(self) -> float:
        """The processor time since a function was begun from outside."""
        return time.thread_time() - self.began

    def is_late(self) -> bool:
        """Whether no further way is to be taken."""
        return self.forks > 0 and self.seconds() > _MOST_SECONDS


walks = _Walks()


def note_undefined() -> None:
    """A container holds what has no value: libraries that are given it must be told."""
    walks.holds_undefined = True


class Origin:
    """Where a value that cannot be told comes from: a decision of a walk."""

    __slots__ = ("attempt", "number", "walk")

    def __init__(self, walk: Walk, number: int):
        self.walk, self.attempt, self.number = walk, walk.attempt, number

    def fail(self, error: Exception) -> None:
        """Raises the fork if there can be one, otherwise the error."""
        self.fork(error)
        raise failed(error)

    def fork(self, error: Exception) -> None:
        """Raises the fork if there can be one."""
        if self.walk in walks.open and self.walk.attempt == self.attempt:
            raise self.walk.fork(self.number, error)


def origin(number: int | None) -> Origin | None:
    """The decision that is to be taken if what comes of a branch, with this number, cannot be told."""
    if not walks.open:
        return None
    walk = walks.open[-1]
    if walk.open:
        number = walk.open[0]
    return None if number is None else Origin(walk, number)


def fail(error: Exception, number: int | None = None) -> None:
    """Raises a fork at the outermost branch that is open (or the one with `number`), or the error."""
    found = origin(number)
    if found is None:
        raise failed(error)
    found.fail(error)


def failed(error: Exception) -> BaseException:
    """What is raised where something cannot be traced."""
    if not walks.open:
        return error
    failure = walks.open[0].failure = walks.open[0].failure or Failure(error)
    return failure


def may_be_caught() -> bool:
    """Whether code of the user's around the line that is being traced may catch an error."""
    frame: types.FrameType | None = sys._getframe(1)
    count = len(walks.open)
    while frame is not None:
        code = frame.f_code
        if code is explore.__code__:
            count -= 1
            if not count:
                return False
        if (
            code in catching
            or is_user_code(code)
            and (code.co_name in _PROTOCOL or is_tried(code.co_filename, frame.f_lineno))
        ):
            return True
        frame = frame.f_back
    return False


catching: set[types.CodeType] = set()  # code of purax that catches errors of functions of the user's
_PROTOCOL = frozenset(
    ("__next__", "__getitem__", "__getattr__", "__getattribute__", "__missing__")
)  # Python catches


def decide(flag: Any) -> tuple[bool | None, int | None]:
    """Whether a traced condition was decided for this walk, and the number of the decision."""
    if not walks.open:
        return None, None
    walk = walks.open[-1]
    check_inherited()
    walks.asked += 1
    if walks.asked > _MOST_ASKED or walks.forks and walks.seconds() > 2 * _MOST_SECONDS:
        try:
            flag.refuse_truth()
        except errors.TracerBoolConversionError as error:
            raise failed(error) from None
    if walks.most_same and walks.asked > _MOST_BOUNDED:
        raise failed(RecursionError("there are too many ways to go through"))
    if walks.most_same and walk.choices:  # a number that a branch chose may decide how deep a function calls itself
        _resolvers[1](flag, RecursionError("a chosen number decides how often a function calls itself"))
    number = walk.number(flag)
    decided = None if number is None else walk.decided(number)
    return (_bounded(walk, flag, decided) if walks.most_same else decided), number


def _bounded(walk: Walk, flag: Any, decided: bool | None) -> bool | None:
    """The decision at a line; one that was taken many times in the same way is taken in the other one, and checked."""
    location = source.user_location()
    place = None if location is None else (location.file, location.line)
    if decided is None:
        most = walks.most_same
        before = [choice for where, choice in (*walk.taken, *walks.sides) if where == place][-most:]
        if len(before) == most and len(set(before)) == 1:
            decided = not before[0]
            message = (
                f"RecursionError: the condition at {location} decided more than {most} times in a row in the "
                "same way how often a function calls itself, or an iterator gives something: write it as a loop"
            )
            error_if((), not_p.bind(flag) if decided else flag, message)
    if decided is not None:
        walk.taken.append((place, decided))
    return decided


@contextlib.contextmanager
def on_side(side: bool) -> Iterator[None]:
    """`with on_side(side):` records what is done if a condition is `side`."""
    if not walks.most_same:
        yield
        return
    location = source.user_location()
    count = len(walks.sides)
    walks.sides.append((None if location is None else (location.file, location.line), side))
    try:
        yield
    finally:
        del walks.sides[count:]


class opened:
    """`with opened(number):` records the blocks of a branch."""

    def __init__(self, number: int | None):
        self.number = number

    def __enter__(self) -> None:
        self.walk = walks.open[-1] if walks.open and self.number is not None else None
        if self.walk is not None:
            self.walk.open.append(self.number)  # type: ignore[arg-type]

    def __exit__(self, *error: Any) -> None:
        if self.walk is not None and self.walk.open:
            self.walk.open.pop()


def explore(function: Callable, args: tuple = (), kwargs: Any = None, heap: Heap | None = None) -> Any:
    """Calls a function; where a decision has to be taken to go on, both ways are recorded."""
    kwargs = kwargs or {}
    walk = Walk(heap if heap is not None else Heap([("", function), ("", args), ("", kwargs)]))
    if not walks.open:
        walks.forks = walks.asked = 0
        walks.holds_undefined = False
        walks.began = time.thread_time()
    outer, depth = (trace.current.decide, trace.current.resolve), len(walks.open)
    try:
        walks.open.append(walk)
        trace.current.decide, trace.current.resolve = decide_truth, _resolvers[0]
        result = _run(walk, {}, function, args, kwargs)
        if walk.failure is not None:  # it was caught on the way
            raise walk.failure
        if depth:
            del walks.open[depth:]
            fix(list(walk.chosen.values()))
        return result
    except Failure as failure:
        if len(walks.open) > 1:
            raise
        raise failure.error from None
    finally:
        trace.current.decide, trace.current.resolve = outer
        del walks.open[depth:]


def _run(walk: Walk, decisions: dict[int, bool], function: Callable, args: tuple, kwargs: Any) -> Any:
    walk.begin(decisions)
    try:
        with walk.heap.watching():
            result = function(*args, **kwargs)
        if walk.pending is None:
            _check_fixed(walk)
            check_inherited()
            return result
        fork = walk.pending  # it was caught on the way, by an `except` without a type
    except Fork as caught:
        if caught.walk is not walk:
            raise
        fork = caught
    except Redo as again:
        if again.walk is not walk:
            raise
        _put_back(walk, again.error)
        return _run(walk, decisions, function, args, kwargs)
    except Exception:
        if walk.pending is None:
            raise
        fork = walk.pending
    walk.forks += 1
    walks.forks += 1
    is_too_much = walk.forks >= _MOST_PATHS or walks.forks >= _MOST_FORKS or walks.asked >= _MOST_DECISIONS
    if is_too_much or walks.is_late():
        walks.is_exhausted = walks.is_exhausted or is_too_much
        raise failed(fork.error) from None
    _put_back(walk, fork.error)
    from_here = walk.flags[fork.number]
    # What was decided after this point had its number on another way, where it may not be asked for at all.
    before = {number: choice for number, choice in decisions.items() if number < fork.number}
    ways = [
        functools.partial(_run, walk, {**before, fork.number: choice}, function, args, kwargs)
        for choice in (True, False)
    ]
    try:
        return _joiners[0](from_here, *ways, walk.heap, fork.error)
    except Failure as failure:
        failure.error = fork.error  # the one that comes first in the function
        raise


def _put_back(walk: Walk, error: Exception) -> None:
    """Puts back what a function changed, to begin it again because of an error."""
    try:
        walk.heap.restore()
    except NotRestorable as lost:
        raise failed(_consumed(lost, error)) from None


def put_back(heap: Heap, error: Exception) -> None:
    """Puts back what a loop changed that is not to be recorded, because of an error; or begins the function again."""
    try:
        heap.restore()
    except NotRestorable as lost:
        if not walks.open:
            raise _consumed(lost, error) from None
        raise Redo(walks.open[-1], error) from None


def roots() -> Iterator[tuple[str, Any]]:
    """The roots of the state that the functions can reach which are being traced."""
    yield from running(explore.__code__, len(walks.open))
    if walks.rows:
        alive = [(reference, reference()) for reference in walks.rows]
        walks.rows = [reference for reference, rows in alive if rows is not None]
        yield from (("", rows) for _, rows in alive if rows is not None)


_joiners: list[Callable] = []


_resolvers: list[Any] = [None, lambda tracer, error: None]


def set_resolver(
    resolve: Callable[[Any, Exception], None], of_truth: Callable[[Any, Exception], None]
) -> None:
    """Sets what may raise a fork where a value, or a truth, is needed that is not known, of a tracer and an error."""
    _resolvers[:] = [resolve, of_truth]


def set_joiner(join: Callable) -> None:
    """Sets what makes one value of the two ways, as `join(flag, way, other, heap, error)`."""
    _joiners[:] = [join]


def _consumed(lost: NotRestorable, error: Exception) -> Exception:
    entry = lost.args[0]
    what = f"`{entry.label}` (a {type(entry.object).__name__})"
    return located(
        TypeError,
        f"{what} comes from outside of the traced function and was consumed on the way to a condition that must be "
        f"tried both ways, but it cannot be put back. Make a list of it outside, or pass its items as arguments.\n"
        f"  {error}",
    )


class Fixed:
    """A NumPy array that a traced value chose, and what is in it: from now on it must stay as it is."""

    __slots__ = ("array", "before", "error", "origin")

    def __init__(self, x: np.ndarray, origin: Origin | None):
        self.array, self.before, self.origin = x, x.copy(), origin
        self.error = located(TypeError, CHANGED_AFTER_CHOICE)

    def fail(self) -> None:
        if self.origin is not None:
            self.origin.fail(self.error)
        raise failed(self.error)


CHANGED_AFTER_CHOICE = (
    "a NumPy array was changed after a traced condition had chosen between it and another one. Make it an array of "
    "`purax.numpy`, and write `x = x.at[i].set(value)`."
)


def fix(arrays: Sequence[np.ndarray], origin: Origin | None = None) -> None:
    """A traced value tells which of some NumPy arrays is meant: from now on they must stay as they are."""
    if arrays and walks.open:
        walks.open[-1].fixed += [Fixed(x, origin) for x in arrays]
        walks.open[-1].chosen.update((id(x), x) for x in arrays)


def check_free(x: np.ndarray) -> None:
    """A NumPy array is about to be changed: if a traced value chose it, the function goes both ways."""
    for walk in walks.open:
        for each in walk.fixed:
            if np.may_share_memory(each.array, x):
                each.fail()


def _check_fixed(walk: Walk) -> None:
    for each in walk.fixed:
        if each.array.tobytes() != each.before.tobytes():
            each.fail()


class Inherited:
    """An attribute that an object has itself on one side of a branch, and of its class on the other.

    After the branch the object has it itself, so that the class must not be given another one.
    """

    __slots__ = ("default", "error", "held", "name", "object", "origin")

    def __init__(self, x: Any, name: str, default: Any, origin: Origin | None):
        self.object, self.name, self.default, self.origin = x, name, default, origin
        self.held = attributes(x).get(name)
        self.error = located(
            TypeError,
            f"`{type(x).__name__}.{name}` is changed after a traced condition decided whether an object has an "
            f"attribute `{name}` of its own. Give each object one from the beginning, in `__init__`",
        )

    def check(self) -> None:
        is_held = attributes(self.object).get(self.name) is self.held
        if is_held and inspect.getattr_static(type(self.object), self.name, None) is not self.default:
            if self.origin is not None:
                self.origin.fail(self.error)
            raise failed(self.error)


def assume_inherited(x: Any, name: str, default: Any, origin: Origin | None) -> None:
    """What an object held of its class was written to it: from now on the class must stay as it is."""
    if walks.open:
        walks.open[-1].inherited.append(Inherited(x, name, default, origin))


def check_inherited() -> None:
    for walk in walks.open:
        for each in walk.inherited:
            each.check()


def exploring(function: Callable) -> Callable:
    """A function that is explored when it is called."""

    @functools.wraps(function)
    def left(*args, **kwargs):  # each way ends with what all of them can be joined to
        return _leavers[0](function(*args, **kwargs))

    @functools.wraps(function)
    def explored(*args, **kwargs):
        attempt = explore if walks.open or walks.most_same else _explore_twice
        return attempt(left, args, kwargs)

    return explored


def _explore_twice(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Explores a function, with a bound if a traced value decides how deep it calls itself or how many ways there are.

    Past the bound the program raises an error when it runs.
    """
    heap = Heap([("", function), ("", args), ("", kwargs)])
    walks.is_exhausted = False
    try:
        return explore(function, args, kwargs, heap)
    except Exception as error:
        if not (isinstance(error, RecursionError) or walks.is_exhausted):
            raise
        try:
            heap.restore()
        except NotRestorable:
            raise error from None
        first = error
    for most in _MOST_SAME:
        walks.most_same, walks.sides = most, []
        try:
            return explore(function, args, kwargs, heap)
        except Exception as error:
            if not isinstance(error, RecursionError):
                break
            try:
                heap.restore()
            except NotRestorable:
                break
        finally:
            walks.most_same = 0
    raise first from None


_leavers: list[Callable] = [lambda result: result]


def set_leaver(leave: Callable[[Any], Any]) -> None:
    """Sets what makes of the result of an explored function one for those outside."""
    _leavers[:] = [leave]


def decide_truth(tracer: Any) -> bool | None:
    """The truth of a traced value that code asks for which is not rewritten; None leaves it to be an error."""
    walk = walks.open[-1] if walks.open else None
    if walk is None or tracer.aval.size != 1 or _asks_library():
        return None
    decided, number = decide(tracer)
    if decided is not None:
        return decided
    try:
        tracer.refuse_truth()
    except errors.TracerBoolConversionError as error:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not explore.__code__:
            if frame.f_code in refusals:
                reason = (
                    f"{error.args[0]}\n  Its control flow could not be rewritten: {refusals[frame.f_code]}."
                )
                error.args = (reason, *error.args[1:])
                break
            frame = frame.f_back
        _resolvers[1](tracer, error)
        fail(error, number)
    return None


def _asks_library() -> bool:
    """Whether an installed package asks, which may expect to be refused."""
    frame: types.FrameType | None = source.user_frame(sys._getframe(1))
    if frame is None:
        return True
    file = frame.f_code.co_filename
    return file_is_library(file) and "site-packages" in file
