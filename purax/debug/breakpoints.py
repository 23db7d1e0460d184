"""`breakpoint`: stops where a value is computed and opens a shell with the user's frames, as pdb does.

The frames are taken when the function is traced; the arrays among their variables are what the callback is given,
so the shell shows their values.
"""

from __future__ import annotations

import bdb
import cmd
import linecache
import pprint
import re
import sys
import traceback
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any

from purax.callbacks.debug import show
from purax.core import source
from purax.core.array import Array
from purax.core.source import located
from purax.core.trace import Tracer, check_usable, current
from purax.errors import shown
from purax.tree.registry import tree_flatten, tree_unflatten


class Frame:
    """A frame of the user's code, as it was at a line.

    Attributes:
        code: of the function.
        line: the number of the line.
        variables: the local variables, with arrays in place of tracers once the shell runs.
        outside: the global variables.
    """

    def __init__(self, code: CodeType, line: int, variables: dict[str, Any], outside: dict[str, Any]):
        self.code = code
        self.line = line
        self.variables = variables
        self.outside = outside

    file = property(lambda self: self.code.co_filename)
    function = property(lambda self: self.code.co_name)

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{self.file}({self.line}){self.function}()\n-> {text}"


class Recorded:
    """A value that cannot be shown: a tracer of a transformation that has ended."""

    def __init__(self, description: str):
        self.description = description

    def __repr__(self) -> str:
        return f"<{self.description}>"


def breakpoint(  # noqa: A001
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stops when the program comes here, and opens a shell to look at the variables; `help` in it lists the commands.

    Args:
        backend: which shell; "cli" is the only one.
        filter_frames: whether purax's own frames are left out.
        num_frames: how many frames, from the innermost one, are kept; None keeps all.
        ordered: whether it stops after the ordered callbacks before it.
        token: a value that must be computed first; it is returned.
        **kwargs: `stdin` and `stdout`, what the shell reads and writes.

    Inside of `jit` the shell opens when the compiled program gets there, and shows the values that it has.

    >>> import io, purax as px
    >>> @px.jit
    ... def f(x):
    ...     y = x + 1
    ...     px.debug.breakpoint(stdin=io.StringIO("p y\\nc\\n"), num_frames=1)
    ...     return y
    >>> z = f(2.0); px.effects_barrier()  # doctest: +ELLIPSIS
    Entering purax.debug.breakpoint; `c` goes on, `help` lists the commands
    > ...
    (pxdb) 3.0
    (pxdb)
    """
    if backend not in (None, "cli"):
        raise located(ValueError, f"debug.breakpoint: backend must be 'cli' or None, got {shown(backend)}")
    unknown = sorted(set(kwargs) - {"stdin", "stdout"})
    if unknown:
        raise located(
            TypeError, f"debug.breakpoint takes stdin and stdout for its shell, got {', '.join(unknown)}"
        )
    frames = user_frames(sys._getframe(1), filter_frames, num_frames)
    values, trees, fixed = [], [], []
    for frame in frames:
        leaves, tree = _flatten(frame.variables)
        arrays = [x for x in leaves if isinstance(x, Array)]
        values.append(arrays)
        trees.append(tree)
        fixed.append([None if isinstance(x, Array) else (x,) for x in leaves])
    opener = Opener(frames, trees, fixed, kwargs)
    show(opener, (values, token), {}, ordered, "debug.breakpoint")
    return token


class Opener:
    """Opens the shell on the frames, given the values of their arrays."""

    __name__ = "breakpoint"

    def __init__(
        self, frames: Sequence[Frame], trees: Sequence[Any], fixed: Sequence[Any], options: dict[str, Any]
    ):
        self.frames, self.trees, self.fixed, self.options = frames, trees, fixed, options

    def __call__(self, values: Any, token: Any) -> None:
        frames = []
        for frame, tree, fixed, arrays in zip(self.frames, self.trees, self.fixed, values, strict=True):
            given = iter(arrays)
            leaves = [next(given) if x is None else x[0] for x in fixed]
            frames.append(Frame(frame.code, frame.line, tree_unflatten(tree, leaves), frame.outside))
        Shell(frames, **self.options).cmdloop()


def user_frames(frame: FrameType | None, filter_frames: bool, count: int | None) -> list[Frame]:
    """The frames from `frame` outwards, without purax's own unless told otherwise."""
    found: list[Frame] = []
    while frame is not None and (count is None or len(found) < count):
        if not filter_frames or not source.code_is_internal(frame.f_code):
            # The variables of a module are its globals, which the shell sees anyway.
            variables = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
            found.append(Frame(frame.f_code, frame.f_lineno, variables, frame.f_globals))
        frame = frame.f_back
    return found


def _flatten(variables: dict[str, Any]) -> tuple[list[Any], Any]:
    """The leaves of local variables, with tracers that are of no use any more described; and their structure."""
    shown = {name: value for name, value in variables.items() if not name.startswith("@")}
    try:
        leaves, tree = tree_flatten(shown)
    except Exception:  # an object of the user's that cannot be taken apart is shown as it is
        leaves, tree = tree_flatten({name: _Opaque(value) for name, value in shown.items()})
        leaves = [x.value for x in leaves]
    return [_usable(x) for x in leaves], tree


class _Opaque:
    """A value that is a leaf whatever it is."""

    def __init__(self, value: Any):
        self.value = value


def _usable(x: Any) -> Any:
    if isinstance(x, Tracer):
        try:
            check_usable(x, current.trace)
        except Exception:
            return Recorded(x.describe())
    return x


class Shell(cmd.Cmd):
    """The commands of the debugger."""

    prompt = "(pxdb) "
    use_rawinput = False

    def __init__(self, frames: Sequence[Frame], stdin: Any = None, stdout: Any = None):
        super().__init__(stdin=stdin, stdout=stdout)
        self.frames = frames
        self.at = 0
        self.intro = "Entering purax.debug.breakpoint; `c` goes on, `help` lists the commands"
        if frames:
            self.intro += f"\n> {frames[0]}"

    frame = property(lambda self: self.frames[self.at])

    def say(self, *texts: Any) -> None:
        builtin = " ".join(map(str, texts))
        self.stdout.write(builtin + "\n")

    def evaluate(self, expression: str) -> tuple[bool, Any]:
        """Whether an expression has a value in the current frame, and which; errors are shown."""
        try:
            return True, eval(expression, self.frame.outside, self.frame.variables)
        except Exception as error:
            self.say("".join(traceback.format_exception_only(error)).strip())
            return False, None

    def do_p(self, expression: str) -> None:
        """p expression: print the value of an expression."""
        known, value = self.evaluate(expression)
        if known:
            self.say(value)

    def do_pp(self, expression: str) -> None:
        """pp expression: print the value of an expression, laid out."""
        known, value = self.evaluate(expression)
        if known:
            self.say(pprint.pformat(value))

    def precmd(self, line: str) -> str:
        # `w = 3` is an assignment, not the command `w`.
        return f"!{line}" if re.match(r"\w+\s*[-+*/|&^%@]?=[^=]", line) else line

    def default(self, line: str) -> bool | None:  # type: ignore[override]  # what it gives ends the loop
        if line == "EOF":
            return self.do_continue("")
        self.do_shell(line)
        return None

    def do_shell(self, line: str) -> None:
        """! statement: run a Python statement in the current frame; what is no command is one too."""
        try:
            code = compile(line, "<purax.debug.breakpoint>", "single")
        except SyntaxError as error:
            self.say("".join(traceback.format_exception_only(error)).strip())
            return
        displayhook, sys.displayhook = sys.displayhook, lambda x: None if x is None else self.say(repr(x))
        try:
            exec(code, self.frame.outside, self.frame.variables)
        except Exception as error:
            self.say("".join(traceback.format_exception_only(error)).strip())
        finally:
            sys.displayhook = displayhook

    def emptyline(self) -> bool:
        return False

    def do_up(self, argument: str) -> None:
        """u(p): go to the frame that called this one."""
        self._go(self.at + 1, "the outermost frame")

    def do_down(self, argument: str) -> None:
        """d(own): go to the frame that this one called."""
        self._go(self.at - 1, "the innermost frame")

    def _go(self, position: int, end: str) -> None:
        if 0 <= position < len(self.frames):
            self.at = position
            self.say(f"> {self.frame}")
        else:
            self.say(f"this is {end}")

    def do_where(self, argument: str) -> None:
        """w(here), bt: print the frames, innermost last."""
        for position in reversed(range(len(self.frames))):
            self.say((">" if position == self.at else " "), self.frames[position])

    def do_list(self, argument: str) -> None:
        """l(ist): print the lines around the current one."""
        frame = self.frame
        for line in range(max(1, frame.line - 5), frame.line + 6):
            text = linecache.getline(frame.file, line)
            if text:
                self.say(f"{line:4d} {'->' if line == frame.line else '  '} {text.rstrip()}")

    def do_args(self, argument: str) -> None:
        """a(rgs): print the local variables."""
        for name, value in self.frame.variables.items():
            self.say(f"{name} = {value!r}")

    def do_continue(self, argument: str) -> bool:
        """c(ontinue): go on with the program."""
        return True

    def do_quit(self, argument: str) -> bool:
        """q(uit): end the program."""
        raise bdb.BdbQuit("the program was ended at a breakpoint")

    do_u, do_d, do_l, do_a, do_c, do_q = do_up, do_down, do_list, do_args, do_continue, do_quit
    do_w = do_bt = do_where
    do_cont, do_exit, do_locals = do_continue, do_quit, do_args
