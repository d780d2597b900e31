"""A model whose losses and maps are made up, for decisions of an audit."""

import numpy as np

from attlas.audit.trial import MapObservation


class Made:
    """A head costs what `costs` says, and a pair together 1 more.

    `maps` are what the changes of maps cost, by name: "first", "second", a type of numbers, and
    pairs of heads as they are asked for.
    """

    unit = "nats"
    examples = "sequences"
    errors = None

    def __init__(self, costs, pair=(), layer_costs=(0.0, 0.0), number=16, maps=None):
        self.costs, self.pair, self.layer_costs = costs, set(pair), layer_costs
        self.heads, self.layers = tuple(costs), len(layer_costs)
        self.removable = tuple((head,) for head in costs)
        self.base = np.linspace(1.0, 3.0, number)
        self.maps = maps or {}
        self.asked = []
        self.alike = ()
        ones = np.ones((number, len(costs)))
        self.seen = MapObservation(0.2 * ones, 0.1 * ones, ones, ones)

    def losses(self, heads=()):
        both = bool(self.pair) and self.pair <= set(heads)
        return self.base + sum(self.costs[head] for head in heads) + both

    def rounded(self, bits):
        few = [layer for layer, number in bits.items() if number == 4]
        return self.base + sum(self.layer_costs[layer] for layer in few)

    def observed(self):
        return self.seen

    def _with(self, what):
        self.asked.append(what)
        return self.base + self.maps.get(what, 0.0)

    def hidden(self, heads, place):
        return self._with(("first", "second")[place])

    def in_type(self, name):
        return self._with(name)

    def sharing(self, pair):
        return self._with((pair.first, pair.second))

    def pairs(self):
        return self.alike
