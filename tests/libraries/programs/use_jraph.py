"""jraph: a graph network by segments, graphs in a batch with padding, and its gradient."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

nodes = jnp.arange(6.0).reshape(3, 2)
graph = jraph.GraphsTuple(
    nodes=nodes,
    edges=jnp.ones((3, 1)),
    senders=jnp.array([0, 1, 2]),
    receivers=jnp.array([1, 2, 1]),
    n_node=jnp.array([3]),
    n_edge=jnp.array([3]),
    globals=jnp.zeros((1, 1)),
)
batch = jraph.batch([graph, graph])
padded = jraph.pad_with_graphs(batch, 8, 8, 3)
assert jraph.get_graph_padding_mask(padded).tolist() == [True, True, False]


def network(scale, graph):
    layer = jraph.GraphNetwork(
        update_edge_fn=lambda edges, sent, received, _: scale * sent * edges,
        update_node_fn=lambda nodes, sent, received, _: nodes + received,
        update_global_fn=lambda nodes, edges, _: nodes,
    )
    return layer(graph)


out = jax.jit(network)(2.0, padded)
wanted = np.asarray(nodes) + 2 * np.array([[0, 0], [0 + 4, 1 + 5], [2, 3]])
np.testing.assert_allclose(out.nodes[:3], wanted)
np.testing.assert_allclose(out.nodes[3:6], wanted)
np.testing.assert_allclose(out.globals[0], wanted.sum(0))
total = lambda scale: jnp.sum(network(scale, graph).globals)  # noqa: E731
np.testing.assert_allclose(jax.grad(total)(2.0), 15.0)
weights = jraph.segment_softmax(jnp.array([0.0, 1.0, 2.0]), graph.receivers, 3)
np.testing.assert_allclose(weights, [1 / (1 + np.e**2), 1.0, np.e**2 / (1 + np.e**2)], rtol=1e-5)
convolved = jraph.GraphConvolution(lambda x: x, add_self_edges=True)(graph)
assert convolved.nodes.shape == (3, 2)
assert [int(g.n_node[0]) for g in jraph.unbatch(batch)] == [3, 3]
print("done")
