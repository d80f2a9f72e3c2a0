"""What both kinds of operations do with values: broadcast, reshape, compute what is known."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from idrl.onnx.graph import Graph, Shape, Unsupported, Value


class Values:
    def __init__(self, graph: Graph):
        self.graph = graph

    def of(self, array: np.ndarray) -> Value:
        return Value(array, array.shape)

    def add(self, shape: Shape, kind: str, *inputs: Value | str, **attributes: Any) -> Value:
        """A node with one output."""
        names = [x if isinstance(x, str) else self.graph.name(x) for x in inputs]
        return Value(self.graph.node(kind, *names, **attributes)[0], shape)

    def computed(self, equation: Any, arrays: list[np.ndarray]) -> list[Value]:
        """By JAX itself: whatever the operation is, its inputs are known."""
        with jax.ensure_compile_time_eval(), jax.default_matmul_precision("highest"):
            found = equation.primitive.bind(*arrays, **equation.params)
        many = found if equation.primitive.multiple_results else [found]
        return [self.of(np.asarray(x)) for x in many]

    def full(self, value: Value, shape: Shape) -> Value:
        """As long as the variable is."""
        if value.shape == shape:
            return value
        missing = [
            1 if have == want else want for have, want in zip(value.shape, shape, strict=True)
        ]
        whole = all(isinstance(n, int) for n in missing)
        if whole and isinstance(value.held, np.ndarray):
            return self.of(np.broadcast_to(value.held, shape))
        if whole:
            target = self.graph.whole(*missing)
        else:
            target = self.graph.node("Concat", *map(self.graph.size, missing), axis=0)[0]
        return self.add(shape, "Expand", value, target)

    def reshaped(self, value: Value, shape: Shape) -> Value:
        """At most one axis depends on the batch, so it is what is left over."""
        if value.shape == shape:
            return value
        if isinstance(value.held, np.ndarray):
            if not all(isinstance(n, int) for n in shape):
                raise Unsupported(f"a reshape of numbers to {shape}")
            return self.of(value.held.reshape(shape))
        free = [n for n in shape if not isinstance(n, int)]
        if len(free) > 1:
            raise Unsupported(f"a reshape to {shape}")
        sizes = [n if isinstance(n, int) else -1 for n in shape]
        return self.add(shape, "Reshape", value, self.graph.whole(*sizes))

    def transposed(self, value: Value, order: tuple[int, ...]) -> Value:
        if order == tuple(range(len(order))):
            return value
        shape = tuple(value.shape[i] for i in order)
        if isinstance(value.held, np.ndarray):
            return self.of(value.held.transpose(order))
        return self.add(shape, "Transpose", value, perm=list(order))
