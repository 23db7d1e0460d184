"""Cases of `purax.primitives.elementwise.xla_functions`."""

from __future__ import annotations

import numpy as np

from purax.primitives.elementwise.xla_functions import (
    engine_exp_p,
    engine_lgamma_p,
    engine_log1p_p,
    engine_log_p,
)
from purax.testing.case import case, numbers
from tests.cases.transcendental import FLOATS, SPECIAL

DOMAINS = {
    engine_exp_p: (-3, 3),
    engine_log_p: (0.1, 4),
    engine_log1p_p: (-0.8, 4),
    engine_lgamma_p: (0.3, 6),
}

CASES = [
    *(
        case(p, numbers(shape, np.float32, *domain))
        for p, domain in DOMAINS.items()
        for shape in ([], [2, 5])
    ),
    *(case(p, numbers([9], dtype, *domain)) for p, domain in DOMAINS.items() for dtype in FLOATS),
    *(case(p, SPECIAL, differentiable=False) for p in DOMAINS),
]
