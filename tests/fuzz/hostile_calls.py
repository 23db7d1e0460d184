"""Every public function with hostile arguments: it returns, or raises an exception that is documented.

A call is a line of text over `hostile_objects`. Calls run in a process that is watched: if it dies or needs more than
`SECONDS` for one, that call is a failure, and so is one that ends in an exception other than those of `DOCUMENTED`.
"""

# ruff: noqa: E501
from __future__ import annotations

import enum
import importlib
import inspect
import os
import random
import re
import resource
import select
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 10.0
START_SECONDS = 120.0
MEMORY = 8 << 30
MODULES = """
purax numpy numpy.fft numpy.linalg lax lax.linalg nn nn.initializers random image tree tree_util dtypes flatten_util ops scipy.fft scipy.linalg
scipy.special scipy.signal scipy.ndimage scipy.integrate scipy.interpolate scipy.optimize scipy.cluster.vq scipy.spatial.transform
scipy.sparse.linalg scipy.stats scipy.stats.norm scipy.stats.gamma scipy.stats.beta scipy.stats.poisson scipy.stats.multivariate_normal
scipy.stats.bernoulli scipy.stats.betabinom scipy.stats.binom scipy.stats.cauchy scipy.stats.chi2 scipy.stats.dirichlet scipy.stats.expon
scipy.stats.gennorm scipy.stats.geom scipy.stats.gumbel_l scipy.stats.gumbel_r scipy.stats.laplace scipy.stats.logistic
scipy.stats.multinomial scipy.stats.nbinom scipy.stats.pareto scipy.stats.t scipy.stats.truncnorm scipy.stats.uniform scipy.stats.vonmises
scipy.stats.wrapcauchy ad_checkpoint custom_batching custom_derivatives debug distributed dlpack export ref sharding test_util typing
profiler example_libraries.optimizers example_libraries.stax experimental experimental.checkify experimental.jet
experimental.layout experimental.mesh_utils experimental.multihost_utils experimental.ode experimental.shard_map experimental.sparse
experimental.sparse.linalg experimental.array_serialization
""".split()
# Of these the functions that they define; the others name what they import, too.
WITH_HELPERS = ("scipy", "example_libraries", "experimental.sparse")
# What changes the process, waits for others, or asks the user.
LEFT_OUT = """
breakpoint clear_caches register_pytree_node register_pytree_node_class register_pytree_with_keys register_static register_dataclass
register_pytree_with_keys_class effects_barrier set_mesh live_arrays print_environment_info save savez load fromfile
register_namedtuple_serialization register_pytree_node_serialization use_mesh set_mesh start_server stop_server start_trace stop_trace trace
save_device_memory_profile register_subprocess initialize shutdown GlobalAsyncCheckpointManager use_abstract_mesh located
""".split()
METHODS = """
all any argmax argmin argsort astype clip compress conj cumprod cumsum diagonal dot item max mean min nonzero prod ptp ravel repeat
reshape round searchsorted sort squeeze std sum swapaxes take tolist trace transpose var view __array__ __getitem__ __format__ __dlpack__
""".split()
OPERATORS = [
    "{0} + {1}", "{1} - {0}", "{0} * {1}", "{0} / {1}", "{0} // {1}", "{1} % {0}", "{0} ** {1}", "{1} ** {0}", "{0} @ {1}", "{1} @ {0}", "{0} == {1}", "{0} < {1}",
    "{0} & {1}", "{0} << {1}", "divmod({0}, {1})", "{0}[{1}]", "{0}[{1}, {2}]", "{0}[{1}:{2}]", "{0}.at[{1}].set({2})", "{0}.at[{1}].add({2})", "{0}.at[{1}].get({2})",
    "round({0}, {1})", "[*{0}][{1}]", "np.add({0}, {1})", "np.asarray({0})", "{1} in {0}", "pow({0}, {1}, {2})",
]  # fmt: skip
TRANSFORMED = [
    "px.jit({f})({0}, {1})", "px.jit({f})({0})", "px.vmap({f})({0})", "px.vmap({f}, {1})({0})", "px.vmap({f}, in_axes={1}, out_axes={2})({0})", "px.grad({f})({0})",
    "px.grad({f}, {1})({0})", "px.jvp({f}, {0}, {1})", "px.vjp({f}, {0})[1]({1})", "px.jacfwd({f})({0})", "px.hessian({f})({0})", "px.linearize({f}, {0})[1]({1})",
    "px.jit({f}, static_argnums={1})({0})", "px.jit({f}, donate_argnums={1})({0})", "px.checkpoint({f})({0})", "px.custom_jvp({f})({0})", "px.custom_vjp({f})({0})",
    "px.eval_shape({f}, {0})", "px.make_jaxpr({f})({0})", "px.lax.scan({f}, {0}, {1})", "px.lax.cond({0}, {f}, {f}, {1})", "px.lax.while_loop({f}, {f}, {0})",
    "px.lax.fori_loop({0}, {1}, {f}, {2})", "px.lax.switch({0}, [{f}, {f}], {1})", "px.lax.map({f}, {0})", "px.pure_callback({f}, {0}, {1})", "px.tree.map({f}, {0}, {1})",
    "px.value_and_grad({f}, has_aux={1})({0})", "px.lax.associative_scan({f}, {0})", "px.jit({f}, static_argnames={1})(x={0})", "px.jit({f}).lower({0}).compile()({1})",
]  # fmt: skip


def public_functions(px: Any) -> dict[str, Any]:
    """The public functions by the expression that names them."""
    found = {}
    for path in MODULES:
        module = px if path == "purax" else importlib.import_module(f"purax.{path}")
        prefix = "px" if path == "purax" else f"px.{path}"
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name, None)
            if name.startswith("_") or name in LEFT_OUT or inspect.ismodule(value) or not callable(value):
                continue
            if isinstance(value, type) and issubclass(value, BaseException):
                continue
            if isinstance(value, enum.EnumMeta) or (
                path.startswith(WITH_HELPERS)
                and not str(getattr(value, "__module__", "")).startswith(module.__name__)
            ):
                continue
            if str(getattr(value, "__module__", "purax")).startswith("purax"):
                found[f"{prefix}.{name}"] = value
    return found


class Calls:
    """Draws calls."""

    def __init__(self, seed: int):
        import purax
        from tests.fuzz import hostile_objects

        self.draw = random.Random(seed)
        self.hostile, self.ordinary = hostile_objects.HOSTILE, hostile_objects.ORDINARY
        self.functions_as_arguments = hostile_objects.FUNCTIONS
        self.functions = sorted(public_functions(purax).items())
        self.turn = 0

    def argument(self, name: str = "", hostility: float = 0.5) -> str:
        draw = self.draw
        if draw.random() < hostility:
            return f"({draw.choice(self.hostile)})"
        if name in ("key", "rng"):
            return "random.key(0)"
        if name in ("shape", "size"):
            return "(2, 3)"
        if name == "axis":
            return "0"
        return f"({draw.choice(self.ordinary)})"

    def of_function(self) -> str:
        name, function = self.functions[self.turn % len(self.functions)]
        self.turn += 1
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        hostility = self.draw.choice((0.2, 0.5, 1.0))
        given = []
        for parameter in parameters:
            required = parameter.default is parameter.empty
            if parameter.kind is parameter.VAR_KEYWORD or not (required or self.draw.random() < 0.25):
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                given += [self.argument("", hostility) for _ in range(self.draw.randrange(3))]
                continue
            text = self.argument(parameter.name, hostility)
            by_name = parameter.kind is parameter.KEYWORD_ONLY or not required
            given.append(
                f"{parameter.name}={text}"
                if by_name and parameter.kind is not parameter.POSITIONAL_ONLY
                else text
            )
        given.sort(key=lambda text: not text.startswith("(") and "=" in text.split("(")[0])
        return f"{name}({', '.join(given)})"

    def of_array(self) -> str:
        x = f"({self.draw.choice([text for text in self.ordinary if text.startswith('jnp')])})"
        if self.draw.random() < 0.5:
            given = ", ".join(self.argument() for _ in range(self.draw.randrange(1, 3)))
            return f"{x}.{self.draw.choice(METHODS)}({given})"
        return self.draw.choice(OPERATORS).format(x, self.argument("", 0.9), self.argument())

    def of_transformation(self) -> str:
        function = f"({self.draw.choice(self.functions_as_arguments)})"
        return self.draw.choice(TRANSFORMED).format(*(self.argument() for _ in range(3)), f=function)

    def __iter__(self) -> Iterator[str]:
        while True:
            kind = self.draw.random()
            call = (
                self.of_function()
                if kind < 0.7
                else self.of_array()
                if kind < 0.85
                else self.of_transformation()
            )
            if "nested(10**6" not in call and self.draw.random() < 0.15:  # its loop would be traced, step by step
                call = f"px.jit(lambda: {call})()"
            if not (call.startswith("np.") and "getitem=1" in call):  # which NumPy itself reads forever
                yield call


# --- the process that makes the calls


def attempt(call: str, names: dict[str, Any]) -> str:
    """Makes a call: the empty string, or what is wrong with how it ended."""
    px = names["px"]
    try:
        px.block_until_ready([x for x in px.tree.leaves(eval(call, dict(names))) if isinstance(x, px.Array)])  # noqa: S307
    except DOCUMENTED + (names["Hostile"], *_own_errors(px)):
        return ""
    except BaseException as error:
        if any(re.search(text, str(error)) for text in DOCUMENTED_MESSAGES.get(type(error), ())):
            return ""
        frames = [f for f in traceback.extract_tb(error.__traceback__) if "/purax/" in f.filename]
        where = f"{frames[-1].filename.partition('/purax/')[2]}:{frames[-1].lineno}" if frames else "?"
        try:
            message = str(error)[:200]
        except BaseException:
            message = "?"
        return f"{type(error).__name__} at {where}: {message}"
    if depth_left() < names["depth"]:
        return "the call left less room for recursion than it found"
    return ""


def depth_left(depth: int = 0) -> int:
    """How deep functions can call each other."""
    try:
        return depth_left(depth + 1)
    except RecursionError:
        return depth


# Exceptions that are jax's, too, where they say what to do.
DOCUMENTED_MESSAGES = {
    AssertionError: ("^check_close: ",),
    NameError: ("unbound axis name",),
    AttributeError: (
        "without a rule; define it",
        "without rules; define them",
        "has no attribute .* of a liar",
    ),
    BufferError: ("DLPack", "dlpack"),
    RuntimeError: ("this process is alone", "this process is in no group", "Unknown backend", "has been deleted or donated"),
}
DOCUMENTED = (
    TypeError,
    ValueError,
    IndexError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    ZeroDivisionError,
)


def _own_errors(px: Any) -> list[type]:
    return [e for e in vars(px.errors).values() if isinstance(e, type) and issubclass(e, Exception)]


def serve() -> None:
    """Answers each line of the input, a call, by a line: how it ended."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what calls print
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import purax
    from tests.fuzz import hostile_objects

    names = hostile_objects.names(purax)
    for path in MODULES[1:]:
        importlib.import_module(f"purax.{path}")
    names["depth"] = depth_left() - 50
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(repr(attempt(eval(line), names)), file=answers, flush=True)  # noqa: S307


class Server:
    """A process that makes calls."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", "from tests.fuzz.hostile_calls import serve; serve()"]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=self.folder.name,
            env=environment,
        )
        self.answer(START_SECONDS)

    def answer(self, seconds: float) -> str | None:
        assert self.process.stdout is not None
        there, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline().strip() if there else None

    def attempt(self, call: str, seconds: float = SECONDS) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{call!r}\n")
        self.process.stdin.flush()
        answer = self.answer(seconds)
        if answer:
            return str(eval(answer))  # noqa: S307
        if answer is None:
            return f"took more than {seconds:.0f} seconds"
        self.errors.seek(0)
        return f"the process died with {self.process.wait()}: {self.errors.read()[-300:]}"

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self.folder.cleanup()
        self.errors.close()


def run(seed: int) -> Iterator[str | None]:
    """Tries calls forever; of each failure the call and how it ended."""
    server = None
    try:
        for call in Calls(seed):
            server = server or Server()
            failure = server.attempt(call)
            if failure.startswith("took"):  # once more, since others may have kept the machine busy
                server.close()
                server = Server()
                failure = server.attempt(call, 3 * SECONDS)
            if failure.startswith(("took", "the process")):
                server.close()
                server = None
            yield f"# {failure}\nfrom tests.fuzz.hostile_objects import *\n{call}" if failure else None
    finally:
        if server is not None:
            server.close()
