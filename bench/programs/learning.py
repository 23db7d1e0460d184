"""Networks and their training, as in the tutorials of libraries for deep learning."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bench.data import integers, normal
from bench.models import transformer_loss, transformer_parameters, weight
from bench.programs import program


@program("transformer of 4 layers, training step")
def transformer(space: Any) -> Any:
    px = space.px
    loss = transformer_loss(space, False)

    def step(parameters: Any, x: Any, y: Any) -> Any:
        value, grads = px.value_and_grad(loss)(parameters, x, y)
        return px.tree_util.tree_map(lambda p, g: p - 0.01 * g, parameters, grads), value

    return step, (transformer_parameters(4, 32), normal(2, 16, 32), normal(2, 16, 32, seed=1))


@program("attention with rotary embedding and a mask")
def rotary_attention(space: Any) -> Any:
    jnp, nn = space.jnp, space.nn

    def rotate(x: Any) -> Any:
        length, width = x.shape[-2:]
        angles = jnp.arange(length)[:, None] / 10000.0 ** (jnp.arange(0, width, 2) / width)
        even, odd = x[..., ::2], x[..., 1::2]
        sin, cos = jnp.sin(angles), jnp.cos(angles)
        return jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)

    def apply(x: Any, w: Any, lengths: Any) -> Any:
        q, k, v = (jnp.einsum("bld,dhk->bhlk", x, w[i]) for i in range(3))
        scores = jnp.einsum("bhik,bhjk->bhij", rotate(q), rotate(k)) / math.sqrt(q.shape[-1])
        place = jnp.arange(x.shape[1])
        mask = (place[:, None] >= place) & (place < lengths[:, None, None, None])
        weights = nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
        return jnp.einsum("bhij,bhjk->bihk", weights, v).reshape(x.shape)

    return apply, (normal(3, 24, 32), normal(3, 32, 4, 8, scale=0.2), np.array([5, 24, 13], np.int32))


@program("GRU over a sequence, gradient with clipping")
def gru(space: Any) -> Any:
    px, jnp, nn, lax = space.px, space.jnp, space.nn, space.lax

    def loss(p: Any, sequence: Any, target: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            z = nn.sigmoid(x @ p["wz"] + h @ p["uz"])
            r = nn.sigmoid(x @ p["wr"] + h @ p["ur"])
            h = (1 - z) * h + z * jnp.tanh(x @ p["wh"] + (r * h) @ p["uh"])
            return h, h @ p["out"]

        _, outputs = lax.scan(cell, jnp.zeros((sequence.shape[1], 24)), sequence)
        return jnp.mean((outputs[..., 0] - target) ** 2)

    def step(p: Any, sequence: Any, target: Any) -> Any:
        value, grads = px.value_and_grad(loss)(p, sequence, target)
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in px.tree_util.tree_leaves(grads)))
        scale = jnp.minimum(1.0, 1.0 / (norm + 1e-6))
        return px.tree_util.tree_map(lambda w, g: w - 0.1 * scale * g, p, grads), value

    names = {
        "wz": (8, 24),
        "wr": (8, 24),
        "wh": (8, 24),
        "uz": (24, 24),
        "ur": (24, 24),
        "uh": (24, 24),
        "out": (24, 1),
    }
    p = {name: weight(*shape, seed=i) for i, (name, shape) in enumerate(names.items())}
    return step, (p, normal(30, 6, 8), normal(30, 6, seed=2))


@program("variational autoencoder, gradient")
def autoencoder(space: Any) -> Any:
    px, jnp, nn, random = space.px, space.jnp, space.nn, space.random

    def loss(p: Any, x: Any, seed: Any) -> Any:
        h = nn.relu(x @ p["e1"])
        mean, spread = h @ p["mean"], h @ p["spread"]
        z = mean + jnp.exp(0.5 * spread) * random.normal(random.PRNGKey(seed), mean.shape)
        logits = nn.relu(z @ p["d1"]) @ p["d2"]
        likelihood = jnp.sum(nn.log_sigmoid(logits) * x + nn.log_sigmoid(-logits) * (1 - x), -1)
        divergence = -0.5 * jnp.sum(1 + spread - mean**2 - jnp.exp(spread), -1)
        return jnp.mean(divergence - likelihood)

    shapes = {"e1": (36, 24), "mean": (24, 4), "spread": (24, 4), "d1": (4, 24), "d2": (24, 36)}
    p = {name: weight(*shape, seed=i) for i, (name, shape) in enumerate(shapes.items())}
    return px.value_and_grad(loss), (p, (normal(10, 36) > 0).astype(np.float32), np.int32(4))


@program("residual MLP with dropout and layer norm, vmap(grad)")
def per_example(space: Any) -> Any:
    px, jnp, nn, random = space.px, space.jnp, space.nn, space.random

    def loss(p: Any, x: Any, y: Any, key: Any) -> Any:
        for w in p:
            h = (x - jnp.mean(x)) / jnp.sqrt(jnp.var(x) + 1e-5)
            key, own = random.split(key)
            keep = random.bernoulli(own, 0.9, h.shape)
            x = x + jnp.where(keep, nn.silu(h @ w) / 0.9, 0.0)
        return jnp.sum((x - y) ** 2)

    def apply(p: Any, x: Any, y: Any, seed: Any) -> Any:
        keys = random.split(random.key(seed), x.shape[0])
        return px.vmap(px.grad(loss), in_axes=(None, 0, 0, 0))(p, x, y, keys)

    return apply, (
        [weight(16, 16, seed=i) for i in range(3)],
        normal(12, 16),
        normal(12, 16, seed=1),
        np.int32(0),
    )


@program("graph network: messages and segment sums, gradient")
def graph_network(space: Any) -> Any:
    px, jnp, nn = space.px, space.jnp, space.nn

    def loss(p: Any, nodes: Any, senders: Any, receivers: Any, target: Any) -> Any:
        for layer in p:
            messages = nn.relu(jnp.concatenate([nodes[senders], nodes[receivers]], -1) @ layer["message"])
            sums = px.ops.segment_sum(messages, receivers, num_segments=nodes.shape[0])
            degree = px.ops.segment_sum(jnp.ones(senders.shape[0]), receivers, num_segments=nodes.shape[0])
            nodes = nn.relu(
                jnp.concatenate([nodes, sums / jnp.maximum(degree, 1)[:, None]], -1) @ layer["node"]
            )
        return jnp.mean((nodes.sum(0) - target) ** 2)

    p = [{"message": weight(24, 12, seed=i), "node": weight(24, 12, seed=i + 9)} for i in range(2)]
    return px.value_and_grad(loss), (
        p,
        normal(20, 12),
        integers(20, 60),
        integers(20, 60, seed=1),
        normal(12, seed=3),
    )


@program("contrastive loss with augmentation")
def contrastive(space: Any) -> Any:
    px, jnp, nn, random = space.px, space.jnp, space.nn, space.random

    def embed(w: Any, images: Any, key: Any) -> Any:
        flipping, shifting, noise = random.split(key, 3)
        flip = random.bernoulli(flipping, 0.5, (images.shape[0], 1, 1))
        images = jnp.where(flip, images[:, :, ::-1], images)
        shift = random.randint(shifting, (images.shape[0],), -2, 3)
        images = px.vmap(lambda image, by: jnp.roll(image, by, axis=0))(images, shift)
        images = images + 0.1 * random.normal(noise, images.shape)
        out = nn.elu(images.reshape(images.shape[0], -1) @ w)
        return out / jnp.linalg.norm(out, axis=-1, keepdims=True)

    def loss(w: Any, images: Any, seed: Any) -> Any:
        first, second = random.split(random.PRNGKey(seed))
        similarity = embed(w, images, first) @ embed(w, images, second).T / 0.1
        return -jnp.mean(jnp.diag(nn.log_softmax(similarity, -1)))

    return px.value_and_grad(loss), (weight(64, 16, seed=1), normal(8, 8, 8), np.int32(5))


@program("beam search decoder by scan")
def beam_search(space: Any) -> Any:
    jnp, lax, nn = space.jnp, space.lax, space.nn

    def apply(embedding: Any, recurrent: Any, output: Any) -> Any:
        width, vocabulary = 4, output.shape[1]

        def step(state: Any, _: Any) -> Any:
            hidden, scores, tokens = state
            hidden = jnp.tanh(embedding[tokens] + hidden @ recurrent)
            joint = scores[:, None] + nn.log_softmax(hidden @ output)
            scores, flat = lax.top_k(joint.ravel(), width)
            parent, tokens = flat // vocabulary, flat % vocabulary
            return (hidden[parent], scores, tokens), (tokens, parent)

        start = (jnp.zeros((width, 16)), jnp.array([0.0, -9.0, -9.0, -9.0]), jnp.zeros(width, jnp.int32))
        (_, scores, _), (tokens, parents) = lax.scan(step, start, None, length=12)
        return scores, tokens, parents

    return apply, (normal(30, 16), weight(16, 16, seed=2), weight(16, 30, seed=3))


@program("meta learning: gradient through 3 inner steps")
def meta_learning(space: Any) -> Any:
    px, jnp = space.px, space.jnp

    def predict(p: Any, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"]) @ p["c"]

    def loss(p: Any, x: Any, y: Any) -> Any:
        return jnp.mean((predict(p, x) - y) ** 2)

    def adapted(p: Any, x: Any, y: Any) -> Any:
        for _ in range(3):
            p = px.tree_util.tree_map(lambda w, g: w - 0.1 * g, p, px.grad(loss)(p, x, y))
        return loss(p, x + 0.5, y)

    def total(p: Any, x: Any, y: Any) -> Any:
        return jnp.mean(px.vmap(adapted, in_axes=(None, 0, 0))(p, x, y))

    p = {"a": weight(1, 20, seed=1), "b": weight(20, 20, seed=2), "c": weight(20, 1, seed=3)}
    return px.value_and_grad(total), (p, normal(4, 10, 1), normal(4, 10, 1, seed=5))


@program("diffusion sampler by fori_loop")
def diffusion(space: Any) -> Any:
    jnp, lax, random, nn = space.jnp, space.lax, space.random, space.nn

    def apply(w: Any, seed: Any) -> Any:
        betas = jnp.linspace(1e-4, 0.02, 50)
        alphas = jnp.cumprod(1 - betas)
        first, key = random.split(random.PRNGKey(seed))

        def step(i: Any, state: Any) -> Any:
            x, key = state
            t = 49 - i
            key, own = random.split(key)
            guess = nn.swish(x @ w["a"] + jnp.sin(t / 50.0 * jnp.arange(32.0))) @ w["b"]
            mean = (x - betas[t] / jnp.sqrt(1 - alphas[t]) * guess) / jnp.sqrt(1 - betas[t])
            noise = jnp.where(t > 0, jnp.sqrt(betas[t]), 0.0)
            return mean + noise * random.normal(own, x.shape), key

        return lax.fori_loop(0, 50, step, (random.normal(first, (6, 8)), key))[0]

    return apply, ({"a": weight(8, 32, seed=1), "b": weight(32, 8, seed=2)}, np.int32(1))
