"""Statistics: likelihoods, samplers, regression and clustering."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench.data import integers, normal, positive_definite, uniform
from bench.programs import program


@program("Gaussian process, gradient of the evidence")
def gaussian_process(space: Any) -> Any:
    px, jnp = space.px, space.jnp

    def evidence(p: Any, x: Any, y: Any) -> Any:
        d2 = jnp.sum((x[:, None] - x) ** 2 / jnp.exp(p["scale"]) ** 2, -1)
        k = jnp.exp(p["signal"]) * jnp.exp(-0.5 * d2) + (jnp.exp(p["noise"]) + 1e-4) * jnp.eye(len(x))
        chol = jnp.linalg.cholesky(k)
        alpha = px.scipy.linalg.cho_solve((chol, True), y)
        return 0.5 * y @ alpha + jnp.sum(jnp.log(jnp.diag(chol))) + 0.5 * len(x) * math.log(2 * math.pi)

    space.px.scipy.linalg  # noqa: B018
    p = {"scale": np.zeros(2, np.float32), "signal": np.float32(0.1), "noise": np.float32(-1.0)}
    return px.value_and_grad(evidence), (p, normal(25, 2), normal(25, seed=1))


@program("Hamiltonian Monte Carlo of a logistic regression")
def hamiltonian(space: Any) -> Any:
    px, jnp, lax, random, nn = space.px, space.jnp, space.lax, space.random, space.nn

    def apply(x: Any, y: Any, seed: Any) -> Any:
        def energy(w: Any) -> Any:
            logits = x @ w
            return jnp.sum(nn.softplus(logits) - y * logits) + 0.5 * jnp.sum(w**2)

        def transition(w: Any, key: Any) -> Any:
            first, second = random.split(key)
            p = random.normal(first, w.shape)

            def leap(_: Any, state: Any) -> Any:
                q, r = state
                r = r - 0.05 * px.grad(energy)(q)
                q = q + 0.1 * r
                return q, r - 0.05 * px.grad(energy)(q)

            q, r = lax.fori_loop(0, 8, leap, (w, p))
            change = energy(w) + 0.5 * p @ p - energy(q) - 0.5 * r @ r
            accepted = jnp.log(random.uniform(second)) < change
            return jnp.where(accepted, q, w), accepted

        # The decision to accept is a comparison, which rounding may turn: a single short chain is compared.
        return lax.scan(transition, jnp.zeros(x.shape[1]), random.split(random.PRNGKey(seed), 6))

    return apply, (normal(40, 4), (normal(40, seed=2) > 0).astype(np.float32), np.int32(2))


@program("mixture of Gaussians by expectation maximization")
def mixture(space: Any) -> Any:
    px, jnp, lax, nn = space.px, space.jnp, space.lax, space.nn

    def apply(x: Any, means: Any) -> Any:
        def log_density(x: Any, mean: Any, covariance: Any) -> Any:
            chol = jnp.linalg.cholesky(covariance)
            z = px.scipy.linalg.solve_triangular(chol, (x - mean).T, lower=True)
            return -0.5 * jnp.sum(z**2, 0) - jnp.sum(jnp.log(jnp.diag(chol))) - math.log(2 * math.pi)

        def step(_: Any, state: Any) -> Any:
            weights, means, covariances = state
            logs = (
                px.vmap(log_density, in_axes=(None, 0, 0))(x, means, covariances) + jnp.log(weights)[:, None]
            )
            share = nn.softmax(logs, axis=0)
            total = jnp.sum(share, 1)
            means = share @ x / total[:, None]
            d = x - means[:, None]
            covariances = jnp.einsum("kn,kni,knj->kij", share, d, d) / total[:, None, None] + 0.1 * jnp.eye(2)
            return total / len(x), means, covariances

        return lax.fori_loop(0, 10, step, (jnp.full(3, 1 / 3), means, jnp.stack([jnp.eye(2)] * 3)))

    space.px.scipy.linalg  # noqa: B018
    return apply, (normal(60, 2), normal(3, 2, seed=1))


@program("hidden Markov model: forward, backward, Viterbi")
def hidden_markov(space: Any) -> Any:
    jnp, lax, nn = space.jnp, space.lax, space.nn

    def apply(start: Any, move: Any, emit: Any, seen: Any) -> Any:
        start, move, emit = (nn.log_softmax(v) for v in (start, move, emit))

        def forward(a: Any, o: Any) -> Any:
            a = nn.logsumexp(a[:, None] + move, axis=0) + emit[:, o]
            return a, a

        def backward(b: Any, o: Any) -> Any:
            return nn.logsumexp(move + emit[:, o] + b, axis=1), b

        def best(v: Any, o: Any) -> Any:
            scores = v[:, None] + move
            return jnp.max(scores, 0) + emit[:, o], jnp.argmax(scores, 0)

        first = start + emit[:, seen[0]]
        last, a = lax.scan(forward, first, seen[1:])
        _, b = lax.scan(backward, jnp.zeros_like(first), seen[1:], reverse=True)
        v, back = lax.scan(best, first, seen[1:])
        end = jnp.argmax(v)
        _, path = lax.scan(lambda s, row: (row[s], row[s]), end, back, reverse=True)
        return nn.logsumexp(last), nn.softmax(a + jnp.roll(b, -1, 0), -1), path

    return apply, (normal(5), normal(5, 5, seed=1), normal(5, 7, seed=2), integers(7, 30))


@program("generalized linear models: log densities of twelve families")
def families(space: Any) -> Any:
    px, jnp, special = space.px, space.jnp, space.special
    lgamma = lambda v: special.gammaln(v)  # noqa: E731

    def apply(x: Any, a: Any, b: Any) -> Any:
        total = -0.5 * ((x - a) / b) ** 2 - jnp.log(b)  # normal
        total += a * jnp.log(b) - lgamma(a) + (a - 1) * jnp.log(x) - b * x  # gamma
        total += special.xlogy(a - 1, x / 4) + special.xlog1py(b - 1, -x / 4) - special.betaln(a, b)  # beta
        total += (
            lgamma((a + 1) / 2) - lgamma(a / 2) - (a + 1) / 2 * jnp.log1p((x - b) ** 2 / a)
        )  # Student's t
        total += special.xlogy(jnp.floor(x), a) - a - lgamma(jnp.floor(x) + 1)  # Poisson
        total += -jnp.log(jnp.pi * b * (1 + ((x - a) / b) ** 2))  # Cauchy
        total += -jnp.abs(x - a) / b - jnp.log(2 * b)  # Laplace
        z = (x - a) / b
        total += -z - 2 * jnp.log1p(jnp.exp(-z)) - jnp.log(b)  # logistic
        total += jnp.log(a / b) + (a - 1) * jnp.log(x / b) - (x / b) ** a  # Weibull
        total += -jnp.log(x * b) - 0.5 * (jnp.log(x) - a) ** 2 / b**2  # log-normal
        total += special.log_ndtr(z) + special.logit(x / 4)  # probit
        total += lgamma(x + a) - lgamma(x + 1) - lgamma(a) + a * jnp.log(b / (1 + b))  # negative binomial
        return jnp.sum(total)

    arguments = (uniform(30, low=0.2, high=3.5), np.float32(1.7), np.float32(1.2))
    return px.value_and_grad(apply, argnums=(1, 2)), arguments


@program("k-means with a while_loop")
def k_means(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(x: Any) -> Any:
        def assign(centres: Any) -> Any:
            return jnp.argmin(jnp.sum((x[:, None] - centres) ** 2, -1), 1)

        def step(state: Any) -> Any:
            centres, old, count = state
            mine = assign(centres)[:, None] == jnp.arange(4)
            sizes = jnp.maximum(jnp.sum(mine, 0), 1)
            return (mine.T.astype(x.dtype) @ x) / sizes[:, None], centres, count + 1

        start = (x[:4], jnp.zeros_like(x[:4]), 0)
        centres, _, _ = lax.while_loop(
            lambda s: (jnp.max(jnp.abs(s[0] - s[1])) > 1e-4) & (s[2] < 20), step, start
        )
        return centres, assign(centres), jnp.bincount(assign(centres), length=4)

    return apply, (normal(50, 3),)


@program("bootstrap of a median and a correlation")
def bootstrap(space: Any) -> Any:
    px, jnp, random = space.px, space.jnp, space.random

    def apply(x: Any, y: Any, seed: Any) -> Any:
        def once(key: Any) -> Any:
            i = random.choice(key, len(x), (len(x),))
            return jnp.median(x[i]), jnp.corrcoef(x[i], y[i])[0, 1], jnp.std(y[i], ddof=1)

        draws = px.vmap(once)(random.split(random.PRNGKey(seed), 50))
        return [jnp.percentile(draw, jnp.array([2.5, 50.0, 97.5])) for draw in draws]

    return apply, (normal(31), normal(31, seed=1), np.int32(8))


@program("Kalman filter and smoother")
def kalman(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(a: Any, h: Any, q: Any, r: Any, observed: Any) -> Any:
        def forward(state: Any, y: Any) -> Any:
            mean, cov = state
            mean, cov = a @ mean, a @ cov @ a.T + q
            s = h @ cov @ h.T + r
            gain = jnp.linalg.solve(s, h @ cov).T
            new = mean + gain @ (y - h @ mean), cov - gain @ h @ cov
            return new, (*new, mean, cov)

        def backward(state: Any, kept: Any) -> Any:
            mean, cov = state
            m, p, m_next, p_next = kept
            gain = jnp.linalg.solve(p_next, a @ p).T
            new = m + gain @ (mean - m_next), p + gain @ (cov - p_next) @ gain.T
            return new, new[0]

        last, (m, p, m_next, p_next) = lax.scan(forward, (jnp.zeros(4), jnp.eye(4)), observed)
        _, smooth = lax.scan(backward, last, (m[:-1], p[:-1], m_next[1:], p_next[1:]), reverse=True)
        return last, smooth

    return apply, (
        np.eye(4, dtype=np.float32) + 0.1 * normal(4, 4), normal(2, 4, seed=1),
        positive_definite(4, 4) * 0.1, positive_definite(2, 2), normal(25, 2, seed=3),
    )  # fmt: skip


@program("samples of ten distributions")
def samples(space: Any) -> Any:
    jnp, random = space.jnp, space.random

    def apply(seed: Any) -> Any:
        keys = random.split(random.key(seed), 10)
        return (
            random.normal(keys[0], (10,)), random.exponential(keys[1], (10,)), random.laplace(keys[2], (10,)),
            random.categorical(keys[3], jnp.arange(5.0), shape=(10,)), random.poisson(keys[4], 3.0, (10,)),
            random.t(keys[5], 4.0, (10,)), random.truncated_normal(keys[6], -1.0, 2.0, (10,)),
            random.permutation(keys[7], 20), random.cauchy(keys[8], (10,)), random.chisquare(keys[9], 3.0, shape=(10,)),
        )  # fmt: skip

    return apply, (np.int32(11),)


@program("principal components and whitening")
def components(space: Any) -> Any:
    jnp = space.jnp

    def apply(x: Any) -> Any:
        centred = x - x.mean(0)
        values, vectors = jnp.linalg.eigh(jnp.cov(centred, rowvar=False))
        signs = jnp.sign(vectors[0])
        projected = centred @ (vectors * signs)[:, ::-1]
        return values, jnp.abs(projected), jnp.linalg.norm(projected / jnp.sqrt(values[::-1] + 1e-3), axis=1)

    return apply, (normal(40, 6),)
