"""Which values of a program to keep, such that others follow from them at the least cost: a minimum cut.

Every value has a cost of being stored, every equation one of being computed again. An equation and each of its results
are nodes; cutting the edge between them stores the result, cutting the edge from the source to an equation computes it
again. Operands of what is computed again must be had in turn, which no cut can avoid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from purax.core.jaxpr import JaxprEqn, Literal, Var

_SOURCE, _SINK = 0, 1


def minimum_cut(
    wanted: Iterable[Var],
    defined: dict[Var, JaxprEqn],
    store: Callable[[Var], float],
    repeat: Callable[[JaxprEqn], float],
) -> tuple[list[Var], set[Var]]:
    """The cheapest choice between storing values and computing them again.

    Args:
        wanted: the values that must be had.
        defined: the equations that make values; a value without one can only be stored.
        store: the cost of storing a value.
        repeat: the cost of computing an equation again; infinite where that must not happen.

    Returns:
        The values to store, and those to compute again; of several minima the one with the fewest of the latter.
    """
    network = _Network()
    node_of: dict[Var, int] = {}
    maker_of: dict[Var, int] = {}
    makers: dict[int, int] = {}  # by the id of an equation
    waiting: list[Var] = []

    def node(v: Var) -> int:
        if v not in node_of:
            node_of[v] = network.add_node()
            waiting.append(v)
        return node_of[v]

    for v in wanted:
        network.join(node(v), _SINK, math.inf)
    while waiting:
        v = waiting.pop()
        eqn = defined.get(v)
        cost = math.inf if eqn is None else repeat(eqn)
        if eqn is None or cost == math.inf:
            network.join(_SOURCE, node_of[v], store(v))
            continue
        maker = makers.get(id(eqn))
        if maker is None:
            maker = makers[id(eqn)] = network.add_node()
            network.join(_SOURCE, maker, cost)
            for atom in eqn.invars:
                if type(atom) is not Literal:
                    network.join(node(atom), maker, math.inf)
        maker_of[v] = maker
        network.join(maker, node_of[v], store(v))
    needed = network.sink_side()
    again = {v for v, maker in maker_of.items() if maker in needed}
    stored = [v for v, number in node_of.items() if number in needed and v not in again]
    return stored, again


class _Network:
    """Capacities between nodes, and the flow through them: the algorithm of Dinic."""

    def __init__(self) -> None:
        self.edges: list[list[int]] = [[], []]  # by node: the edges that leave it
        self.stop: list[int] = []
        self.capacity: list[float] = []  # edge i ^ 1 is the reverse of edge i

    def add_node(self) -> int:
        self.edges.append([])
        return len(self.edges) - 1

    def join(self, start: int, stop: int, capacity: float) -> None:
        for a, b, size in ((start, stop, capacity), (stop, start, 0.0)):
            self.edges[a].append(len(self.stop))
            self.stop.append(b)
            self.capacity.append(size)

    def sink_side(self) -> set[int]:
        """After the flow is as large as it can be: the nodes from which more could flow to the sink."""
        while (levels := self._levels())[_SINK] >= 0:
            self._block(levels)
        reaching = {_SINK}
        waiting = [_SINK]
        while waiting:
            for edge in self.edges[waiting.pop()]:
                before = self.stop[edge]
                if before not in reaching and self.capacity[edge ^ 1] > 0:
                    reaching.add(before)
                    waiting.append(before)
        return reaching

    def _levels(self) -> list[int]:
        """How far each node is from the source, along edges with capacity left; -1 if it cannot be reached."""
        levels = [-1] * len(self.edges)
        levels[_SOURCE] = 0
        front = [_SOURCE]
        while front and levels[_SINK] < 0:
            following = []
            for node in front:
                for edge in self.edges[node]:
                    stop = self.stop[edge]
                    if levels[stop] < 0 and self.capacity[edge] > 0:
                        levels[stop] = levels[node] + 1
                        following.append(stop)
            front = following
        return levels

    def _block(self, levels: list[int]) -> None:
        """Sends flow along all paths that go one level further with each edge."""
        left = [len(edges) for edges in self.edges]  # of each node, the edges not tried yet
        path: list[int] = []
        node = _SOURCE
        while True:
            if node == _SINK:
                flow = min(self.capacity[edge] for edge in path)
                full = len(path)
                for place in reversed(range(len(path))):
                    edge = path[place]
                    self.capacity[edge] -= flow
                    self.capacity[edge ^ 1] += flow
                    if self.capacity[edge] <= 0:
                        full = place
                node = self.stop[path[full] ^ 1]
                del path[full:]
                continue
            while left[node]:
                edge = self.edges[node][left[node] - 1]
                if self.capacity[edge] > 0 and levels[self.stop[edge]] == levels[node] + 1:
                    break
                left[node] -= 1
            if left[node]:
                path.append(edge)
                node = self.stop[edge]
            elif path:
                node = self.stop[path.pop() ^ 1]
                left[node] -= 1
            else:
                return
