"""`checkpoint_policies.budget`: derivatives stay, the bytes are kept to, more bytes mean less work."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.ad_checkpoint import saved_residuals


def layer(x, w):
    h = jnp.exp(-jnp.square(jnp.tanh(x @ w)))
    return jnp.sin(h) @ w.T + jnp.max(h, axis=1, keepdims=True)


def network(x, weights):
    for w in weights:
        x = layer(x, w)
    return jnp.sum(x**2)


def recurrent(x, weights):
    def step(carry, w):
        return layer(carry, w), jnp.sum(carry)

    carry, sums = px.lax.scan(step, x, jnp.stack(weights))
    return jnp.sum(carry) + jnp.prod(jnp.cos(sums))


def branching(x, weights):
    chosen = px.lax.cond(x[0, 0] > 0, lambda: layer(x, weights[0]), lambda: jnp.cos(x))
    return jnp.sum(jnp.sin(chosen) * jnp.cumsum(chosen, axis=0))


GENERATOR = np.random.default_rng(0)
WEIGHTS = [jnp.asarray(GENERATOR.normal(size=(8, 24)) * 0.2, "float64") for _ in range(3)]
X = jnp.asarray(GENERATOR.normal(size=(16, 8)), "float64")
LIMITS = [0, 100, 4000, 10_000, 40_000, 10**7]


@pytest.mark.parametrize("function", [network, recurrent, branching])
def test_derivatives_are_the_same_whatever_is_kept(function):
    expected = px.grad(function, argnums=1)(X, WEIGHTS)
    for limit in LIMITS:
        kept = px.checkpoint(function, policy=px.checkpoint_policies.budget(limit))
        for transform in (lambda f: f, px.jit):
            found = transform(px.grad(kept, argnums=1))(X, WEIGHTS)
            for mine, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("function", [network, recurrent, branching])
def test_no_more_is_kept_than_the_budget_and_more_bytes_mean_less_work(function):
    work = []
    for limit in LIMITS:
        budget = px.checkpoint_policies.budget(limit)
        report = budget.report(function)(X, WEIGHTS)
        assert report.kept_bytes <= limit
        work.append(report.repeated_work)
        given = X.nbytes + sum(w.nbytes for w in WEIGHTS)
        found = saved_residuals(px.checkpoint(function, policy=budget), X, WEIGHTS)
        assert sum(aval.size * aval.dtype.itemsize for aval, _ in found) <= limit + given + 64
    assert work == sorted(work, reverse=True)
    assert work[0] > 0.5 and work[-1] == 0


def test_under_vmap_and_twice_differentiated():
    kept = px.checkpoint(lambda x: network(x, WEIGHTS), policy=px.checkpoint_policies.budget(4000))
    batch = jnp.stack([X, X + 0.5])
    expected = px.vmap(px.grad(lambda x: network(x, WEIGHTS)))(batch)
    np.testing.assert_allclose(px.vmap(px.grad(kept))(batch), expected, rtol=1e-9, atol=1e-9)

    def second(f):
        return px.grad(lambda x: jnp.sum(px.grad(f)(x) ** 2))(X)

    np.testing.assert_allclose(second(kept), second(lambda x: network(x, WEIGHTS)), rtol=1e-9, atol=1e-9)


def test_the_report_names_the_lines_of_the_user():
    report = px.checkpoint_policies.budget(4000).report(network)(X, WEIGHTS)
    assert all("test_memory_budget.py" in row.line for row in report.rows)
    assert {row.is_kept for row in report.rows} == {True, False}
    text = str(report)
    assert "computed again" in text and f"kept: {report.kept_bytes:,} bytes" in text


def test_random_numbers_and_effects_happen_once():
    seen = []

    def noisy(x):
        noise = px.random.normal(px.random.key(0), x.shape)
        told = px.experimental.io_callback(
            lambda v: seen.append(v) or v, px.ShapeDtypeStruct(x.shape, x.dtype), px.lax.stop_gradient(x)
        )
        return jnp.sum(jnp.sin(told * noise) + jnp.sin(x * noise))

    expected = px.grad(noisy)(X)
    seen.clear()
    kept = px.checkpoint(noisy, policy=px.checkpoint_policies.budget(100))
    np.testing.assert_allclose(px.jit(px.grad(kept))(X), expected, rtol=1e-9, atol=1e-9)
    px.effects_barrier()
    assert len(seen) == 1


def test_a_budget_beside_another_policy_keeps_what_it_would_alone():
    policies = px.checkpoint_policies
    alone, named = policies.budget(40_000), policies.save_only_these_names("none")
    both = policies.save_from_both_policies(named, policies.save_from_both_policies(alone, named))

    def kept(policy):
        found = saved_residuals(px.checkpoint(network, policy=policy), X, WEIGHTS)
        return sorted((str(aval), where) for aval, where in found)

    assert kept(both) == kept(alone) != kept(named)


def test_budgets_of_equal_size_are_one_policy():
    assert px.checkpoint_policies.budget(5) == px.checkpoint_policies.budget(5)
    assert px.checkpoint_policies.budget(5) != px.checkpoint_policies.budget(6)


@pytest.mark.parametrize(
    ("limit", "error", "message"),
    [(-1, ValueError, "must not be negative"), (1.5, TypeError, "an integer"), ("1 MB", TypeError, "an integer")],
)
def test_what_a_budget_may_be(limit, error, message):
    with pytest.raises(error, match=message):
        px.checkpoint_policies.budget(limit)
