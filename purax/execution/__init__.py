"""How operations and programs run: plans of eager operations, straight-line NumPy programs, dispatch, placement.

Eager operations look up a `Plan` by primitive, operand types and parameters (`eager`). Small work on arrays whose
value is on the host, or in the CPU's memory, is done by `host` in about a microsecond, and nothing is compiled;
everything else runs a compiled program of one operation. Work at the speed of memory (`streaming_cost`) stays on the
host up to the size from which XLA's threads gain on NumPy's one (`eager.streaming_limit`); such results lie where
programs use them in place (`xla.aligned_memory`), in blocks of a pool that XLA's library allocates from as well
(`xla.host_memory`). A small array that is still being computed is waited for, since NumPy and XLA round differently,
and results must not depend on who is faster. `DeviceArray` keeps a host value, a buffer, or both, each made from the
other when asked for.

Eager `cond`, `scan` and `while_loop` run short loops equation by equation, as straight-line NumPy programs where they
can (`host_program`), and compile long ones. So are the rules of `jvp`, `linearize` (with its transpose) and `batch`
for an operation that eager transformations have met 16 times with the same types (`host_rules`): the rule is recorded
as a program once. A loop with a fresh `lambda` is recorded again, but a program that was met before
(`known_programs`) is that one, with all that was derived from it. On the tape such an operation is one `HostStep`,
which becomes equations again wherever somebody wants these.

Parts are written in C, with the Python as their meaning. `core/_bind.c` hands operations to the current trace and
takes the fast path to a `Plan` that it has seen; it gives concrete arrays their operators and views (`_operators.h`),
runs rules on the host (`_host_rules.h`) and records equations (`_staging.h`). `_dispatch.c` takes a call of a
compiled function from its arguments to its results. Arguments that are built as those of the call before are not
flattened again (`_structures.h`), and small NumPy arguments are copied to argument buffers that are used again once
the program is done (`_loans.h`). Whatever is not the common case goes back to Python.
"""
