"""A few of the random programs of `varying_shapes`; `make fuzz ONLY=varying_shapes` tries more."""

import itertools

from tests.fuzz import varying_shapes


def test_programs_on_padded_arrays_give_what_plain_ones_give():
    found = [problem for problem in itertools.islice(varying_shapes.run(7), 60) if problem is not None]
    assert not found, "\n".join(found)
