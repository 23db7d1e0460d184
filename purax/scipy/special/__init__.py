"""Special functions, as `jax.scipy.special`."""

# ruff: noqa: F401
from purax.nn.normalization import logsumexp
from purax.scipy.special.bessel import bessel_jn, i0, i0e, i1, i1e
from purax.scipy.special.entropy import (
    boxcox,
    boxcox1p,
    entr,
    expit,
    kl_div,
    logit,
    rel_entr,
    xlog1py,
    xlogy,
)
from purax.scipy.special.errors import (
    dawsn,
    erf,
    erfc,
    erfcx,
    erfinv,
    fresnel,
    log_ndtr,
    ndtr,
    ndtri,
    owens_t,
    wofz,
)
from purax.scipy.special.gamma import (
    bernoulli,
    beta,
    betainc,
    betaln,
    comb,
    digamma,
    factorial,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    gammasgn,
    loggamma,
    multigammaln,
    poch,
    polygamma,
    zeta,
)
from purax.scipy.special.harmonics import sph_harm_y
from purax.scipy.special.integrals import exp1, expi, expn, hyp1f1, hyp2f1, sici, spence
from purax.scipy.special.softmax import log_softmax, softmax
