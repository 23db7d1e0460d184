from purax.numpy.nan_reductions import (  # noqa: F401
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from purax.numpy.reductions import (  # noqa: F401
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    min,
    prod,
    ptp,
    sum,
)
from purax.numpy.statistics import average, corrcoef, cov, mean, std, var  # noqa: F401
