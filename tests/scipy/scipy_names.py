"""The public names of `jax.scipy` 0.10.2: special, linalg, fft, stats, and the functions of each distribution."""

SPECIAL = """
bernoulli bessel_jn beta betainc betaln boxcox boxcox1p comb dawsn digamma entr erf erfc erfcx
erfinv exp1 expi expit expn factorial fresnel gamma gammainc gammaincc gammaln gammasgn hyp1f1
hyp2f1 i0 i0e i1 i1e kl_div log_ndtr log_softmax loggamma logit logsumexp multigammaln ndtr ndtri
owens_t poch polygamma rel_entr sici softmax spence sph_harm_y wofz xlog1py xlogy zeta
""".split()

LINALG = """
block_diag cho_factor cho_solve cholesky circulant companion convolution_matrix det dft eigh
eigh_tridiagonal expm expm_frechet fiedler fiedler_companion funm hadamard hankel helmert hessenberg
hilbert inv invhilbert invpascal leslie lu lu_factor lu_solve pascal polar qr qr_multiply rsf2csf
schur solve solve_sylvester solve_triangular sqrtm svd toeplitz
""".split()

FFT = """
dct dctn idct idctn
""".split()

STATS = """
gaussian_kde mode rankdata sem
""".split()

DISTRIBUTIONS = {
    "bernoulli": "cdf logpmf pmf ppf".split(),
    "beta": "cdf logcdf logpdf logsf pdf sf".split(),
    "betabinom": "logpmf pmf".split(),
    "binom": "logpmf pmf".split(),
    "cauchy": "cdf isf logcdf logpdf logsf pdf ppf sf".split(),
    "chi2": "cdf logcdf logpdf logsf pdf sf".split(),
    "dirichlet": "logpdf pdf".split(),
    "expon": "cdf logcdf logpdf logsf pdf ppf sf".split(),
    "gamma": "cdf logcdf logpdf logsf pdf sf".split(),
    "gennorm": "cdf logpdf pdf".split(),
    "geom": "logpmf pmf".split(),
    "gumbel_l": "cdf logcdf logpdf logsf pdf ppf sf".split(),
    "gumbel_r": "cdf logcdf logpdf logsf pdf ppf sf".split(),
    "laplace": "cdf logpdf pdf".split(),
    "logistic": "cdf isf logpdf pdf ppf sf".split(),
    "multinomial": "logpmf pmf".split(),
    "multivariate_normal": "logpdf pdf".split(),
    "nbinom": "logpmf pmf".split(),
    "norm": "cdf isf logcdf logpdf logsf pdf ppf sf".split(),
    "pareto": "cdf logcdf logpdf logsf pdf ppf sf".split(),
    "poisson": "cdf entropy logpmf pmf".split(),
    "t": "logpdf pdf".split(),
    "truncnorm": "cdf logcdf logpdf logsf pdf sf".split(),
    "uniform": "cdf logpdf pdf ppf".split(),
    "vonmises": "logpdf pdf".split(),
    "wrapcauchy": "logpdf pdf".split(),
}

KDE = """
covariance d dataset evaluate integrate_box integrate_box_1d integrate_gaussian integrate_kde
inv_cov logpdf n neff pdf resample set_bandwidth tree_flatten tree_unflatten weights
""".split()
