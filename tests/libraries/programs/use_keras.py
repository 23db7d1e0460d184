"""Keras 3 on its JAX backend: models that build themselves, training, states, saving, and windows of floats."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np

assert keras.backend.backend() == "jax"
keras.utils.set_random_seed(0)
numbers = np.random.default_rng(0)
images = numbers.normal(size=(96, 8, 8, 1)).astype("float32")
labels = (images.mean((1, 2, 3)) > 0).astype("int32")

# A model without an input shape: `fit` builds it, through shapes with unknown sizes.
model = keras.Sequential(
    [
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(2),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
history = model.fit(images, labels, batch_size=32, epochs=8, verbose=0, validation_split=0.25).history
assert history["loss"][-1] < 0.8 * history["loss"][0], history["loss"]
assert model.evaluate(images, labels, verbose=0)[1] > 0.7
answers = model.predict(images, verbose=0)
assert answers.shape == (96, 2)

with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "model.keras")
    model.save(file)
    again = keras.saving.load_model(file)
    np.testing.assert_allclose(again.predict(images, verbose=0), answers, atol=1e-6)
    model.save_weights(os.path.join(folder, "model.weights.h5"))

# The functional interface, with attention and recurrence, under `stateless_call` and grad.
words = keras.Input((None,), dtype="int32")
x = keras.layers.Embedding(20, 8)(words)
x = keras.layers.MultiHeadAttention(2, 4)(x, x)
x = keras.layers.LayerNormalization()(x)
x = keras.layers.GRU(6)(x)
reader = keras.Model(words, keras.layers.Dense(1)(x))
text = numbers.integers(0, 20, (5, 7))
trainable = [v.value for v in reader.trainable_variables]
others = [v.value for v in reader.non_trainable_variables]


def squared(trainable):
    out, _ = reader.stateless_call(trainable, others, text)
    return jnp.sum(out**2)


gradients = jax.jit(jax.grad(squared))(trainable)
assert len(gradients) == len(trainable)
direction = [numbers.normal(size=g.shape).astype("float32") for g in gradients]
ahead, behind = (squared([v + s * d for v, d in zip(trainable, direction, strict=True)]) for s in (1e-3, -1e-3))
along = sum(float(jnp.vdot(g, d)) for g, d in zip(gradients, direction, strict=True))
np.testing.assert_allclose((ahead - behind) / 2e-3, along, rtol=0.1, atol=0.1)


class Scale(keras.layers.Layer):
    """A layer that makes its weight when it is called first."""

    def build(self, shape):
        self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        return x * self.scale + keras.ops.mean(x, axis=-1, keepdims=True)


class Small(keras.Model):
    """A model of layers that is subclassed."""

    def __init__(self):
        super().__init__()
        self.parts = [keras.layers.Dense(4, activation="gelu"), Scale(), keras.layers.Dense(1)]

    def call(self, x, training=False):
        for part in self.parts:
            x = part(x)
        return x


small = Small()
small.compile("sgd", "mse")
inputs = numbers.normal(size=(64, 3)).astype("float32")
losses = small.fit(inputs, inputs.sum(1, keepdims=True), epochs=5, verbose=0).history["loss"]
assert losses[-1] < losses[0]

spectrum = keras.ops.stft(np.sin(np.arange(256.0, dtype="float32")), 64, 32, 64, window="hann")
assert np.argmax(np.asarray(spectrum[0]) ** 2 + np.asarray(spectrum[1]) ** 2, -1)[3] == round(64 / 2 / np.pi)
np.testing.assert_allclose(keras.ops.kaiser(np.float32(10), 1.0), np.kaiser(10, 1.0), rtol=1e-5)
np.testing.assert_allclose(keras.ops.blackman(5.0), np.blackman(5), atol=1e-6)

print("done")
