"""Games, graphics and puzzles: boards, rays, searches, small environments with policies."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.data import integers, normal, uniform
from bench.models import weight
from bench.programs import program


@program("game of life, 20 generations")
def life(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(board: Any) -> Any:
        def step(board: Any, _: Any) -> Any:
            around = sum(
                jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
            )
            return ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype), jnp.sum(board)

        return lax.scan(step, board, None, length=20)

    return apply, (integers(2, 24, 24),)


@program("sphere tracer with shading")
def ray_tracer(space: Any) -> Any:
    px, jnp, lax = space.px, space.jnp, space.lax

    def distance(p: Any) -> Any:
        ball = jnp.linalg.norm(p - jnp.array([0.0, 0.0, 3.0])) - 1.0
        ring = jnp.hypot(jnp.hypot(p[0], p[2] - 3.0) - 1.5, p[1]) - 0.2
        return jnp.minimum(jnp.minimum(ball, ring), p[1] + 1.2)

    def shade(pixel: Any) -> Any:
        ray = jnp.append(pixel, 1.0)
        ray = ray / jnp.linalg.norm(ray)
        depth = lax.fori_loop(0, 20, lambda _, t: t + distance(t * ray), 0.0)
        normal_ = px.grad(distance)(depth * ray)
        light = jnp.array([0.5, 0.7, -0.5])
        return jnp.where(depth < 10.0, jnp.clip(normal_ @ light, 0.0, 1.0) ** 2, 0.1)

    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 16), np.linspace(-1, 1, 12)), -1).reshape(-1, 2)
    return px.vmap(shade), (grid.astype(np.float32),)


@program("tic-tac-toe: random playouts under vmap")
def playouts(space: Any) -> Any:
    px, jnp, lax, random = space.px, space.jnp, space.lax, space.random
    lines = np.array([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)])

    def winner(board: Any) -> Any:
        sums = board[lines].sum(1)
        return jnp.where(jnp.any(sums == 3), 1, jnp.where(jnp.any(sums == -3), -1, 0))

    def play(key: Any) -> Any:
        def go_on(state: Any) -> Any:
            return (state[2] < 9) & (winner(state[0]) == 0)

        def move(state: Any) -> Any:
            board, key, turn = state
            key, own = random.split(key)
            place = random.categorical(own, jnp.where(board == 0, 0.0, -1e9))
            return board.at[place].set(jnp.where(turn % 2 == 0, 1, -1)), key, turn + 1

        board, _, turns = lax.while_loop(go_on, move, (jnp.zeros(9, jnp.int32), key, 0))
        return winner(board), turns

    def apply(seed: Any) -> Any:
        results, turns = px.vmap(play)(random.split(random.PRNGKey(seed), 16))
        return jnp.mean(results == 1), jnp.mean(results == -1), turns

    return apply, (np.int32(1),)


@program("cart pole: policy gradient through scan and cond")
def cart_pole(space: Any) -> Any:
    px, jnp, lax, random, nn = space.px, space.jnp, space.lax, space.random, space.nn

    def physics(state: Any, force: Any) -> Any:
        x, v, angle, spin = state
        sin, cos = jnp.sin(angle), jnp.cos(angle)
        temp = (force + 0.05 * spin**2 * sin) / 1.1
        turn = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        push = temp - 0.05 * turn * cos / 1.1
        return jnp.stack([x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn])

    def episode(p: Any, key: Any) -> Any:
        def step(carry: Any, key: Any) -> Any:
            state, alive = carry
            logits = jnp.tanh(state @ p["a"]) @ p["b"]
            action = random.categorical(key, logits)
            new = lax.cond(
                alive, lambda s: physics(s, jnp.where(action == 1, 10.0, -10.0)), lambda s: s, state
            )
            alive = alive & (jnp.abs(new[2]) < 0.2)
            return (new, alive), (nn.log_softmax(logits)[action], alive.astype(jnp.float32))

        start, key = random.split(key)
        carry = (0.05 * random.normal(start, (4,)), jnp.array(True))
        _, (logs, rewards) = lax.scan(step, carry, random.split(key, 40))
        returns = jnp.cumsum(rewards[::-1])[::-1]
        return -jnp.sum(logs * lax.stop_gradient(returns - jnp.mean(returns)))

    def loss(p: Any, seed: Any) -> Any:
        return jnp.mean(px.vmap(episode, in_axes=(None, 0))(p, random.split(random.PRNGKey(seed), 8)))

    return px.value_and_grad(loss), ({"a": weight(4, 16, seed=1), "b": weight(16, 2, seed=2)}, np.int32(0))


@program("shortest paths and a maze flood")
def paths(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(lengths: Any, walls: Any) -> Any:
        def relax(k: Any, d: Any) -> Any:
            return jnp.minimum(d, d[:, k][:, None] + d[k][None, :])

        distances = lax.fori_loop(0, lengths.shape[0], relax, lengths)

        def spread(state: Any) -> Any:
            reached, _, steps = state
            padded = jnp.pad(reached, 1)
            near = padded[:-2, 1:-1] | padded[2:, 1:-1] | padded[1:-1, :-2] | padded[1:-1, 2:]
            new = (reached | near) & ~walls
            return new, jnp.any(new != reached), steps + 1

        start = jnp.zeros_like(walls).at[0, 0].set(True)
        reached, _, steps = lax.while_loop(lambda s: s[1], spread, (start, jnp.array(True), 0))
        return distances, reached, steps

    return apply, (uniform(16, 16, low=0.1, high=2.0), uniform(14, 14, seed=1) > 0.7)


@program("2048: slide and merge a board")
def slide(space: Any) -> Any:
    px, jnp, lax = space.px, space.jnp, space.lax

    def left(row: Any) -> Any:
        row = row[jnp.argsort(row == 0, stable=True)]

        def merge(i: Any, row: Any) -> Any:
            same = (row[i] == row[i + 1]) & (row[i] > 0)
            return row.at[i].add(jnp.where(same, 1, 0)).at[i + 1].multiply(jnp.where(same, 0, 1))

        row = lax.fori_loop(0, 3, merge, row)
        return row[jnp.argsort(row == 0, stable=True)]

    def apply(board: Any, moves: Any) -> Any:
        def turn(board: Any, move: Any) -> Any:
            sides = [lambda b, k=k: jnp.rot90(px.vmap(left)(jnp.rot90(b, k)), -k) for k in range(4)]
            board = lax.switch(move, sides, board)
            return board, jnp.sum(board == 0)

        return lax.scan(turn, board, moves)

    return apply, (integers(3, 4, 4), integers(4, 12, seed=1))


@program("particles with collisions, drawn to pixels")
def particles(space: Any) -> Any:
    jnp, lax = space.jnp, space.lax

    def apply(x: Any, v: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            x, v = state
            v = v.at[:, 1].add(-0.01)
            x = x + v
            v = jnp.where((x < 0) | (x > 1), -0.9 * v, v)
            x = jnp.clip(x, 0.0, 1.0)
            pixel = (x * 15.999).astype(jnp.int32)
            frame = jnp.zeros((16, 16), jnp.uint8).at[pixel[:, 1], pixel[:, 0]].add(1)
            return (x, v), frame

        return lax.scan(step, (x, v), None, length=15)

    return apply, (uniform(20, 2), normal(20, 2, seed=1, scale=0.02))


@program("no jit: statistics of a table, operation by operation", jit=False)
def table_statistics(space: Any) -> Any:
    jnp = space.jnp

    def apply(x: Any, labels: Any) -> Any:
        scaled = (x - x.mean(0)) / x.std(0)
        correlation = jnp.corrcoef(scaled.T)
        order = jnp.argsort(scaled[:, 0])
        groups = jnp.stack(
            [
                jnp.where((labels == k)[:, None], x, 0).sum(0) / jnp.maximum((labels == k).sum(), 1)
                for k in range(3)
            ]
        )
        outliers = jnp.abs(scaled) > 2.0
        return (
            correlation,
            scaled[order][:5],
            groups,
            outliers.sum(0),
            jnp.percentile(x, 75, axis=0),
            jnp.linalg.norm(scaled, axis=1),
        )

    return apply, (normal(200, 6), integers(3, 200))
