"""The graph that is being written: nodes, numbers that are known, and the sizes of the batch."""

from __future__ import annotations

import types
from typing import Any, NamedTuple

import numpy as np

from idrl.errors import IdrlError

Dim = Any  # a whole number, or one that depends on the size of the batch
Shape = tuple[Dim, ...]

OPSET = 17
IR_VERSION = 8  # both of 2022: readers from onnxruntime 1.12 on know them


class Unsupported(Exception):
    """An operation that has no form in ONNX here. Its text is what JAX calls it."""


class Value(NamedTuple):
    """What a variable stands for.

    `shape` may have 1 where the variable is longer: broadcasting waits until somebody needs it, so
    that what does not depend on the observation is computed once, while the graph is written.
    """

    held: str | np.ndarray  # the name of a tensor, or its numbers where they are known
    shape: Shape


def package() -> types.ModuleType:
    """onnx, which need not be installed."""
    try:
        import onnx
    except ImportError:
        raise IdrlError(
            "ONNX needs a package that is not installed: pip install 'idrl[onnx]'."
        ) from None
    return onnx


class Graph:
    """Nodes in the order in which they are computed."""

    def __init__(self) -> None:
        self.onnx = package()
        self.nodes: list[Any] = []
        self.known: dict[tuple, tuple[str, np.ndarray]] = {}
        self.sizes: dict[Dim, str] = {}  # tensors `[1]` of int64
        self._count = 0

    def node(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        names = [self._name(kind.lower()) for _ in range(outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), names, **attributes))
        return names

    def constant(self, array: np.ndarray) -> str:
        """The name of these numbers, which are stored once."""
        array = np.asarray(array, order="C")
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = self._name("weight" if array.ndim > 1 else "number"), array
        return self.known[key][0]

    def whole(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def name(self, value: Value) -> str:
        return value.held if isinstance(value.held, str) else self.constant(value.held)

    def size(self, dim: Dim) -> str:
        """The tensor `[1]` that holds it."""
        if isinstance(dim, int):
            return self.whole(dim)
        if dim not in self.sizes:
            for base, name in list(self.sizes.items()):
                times, rest = divmod(dim, base)
                if isinstance(times, int) and rest == 0:
                    self.sizes[dim] = self.node("Mul", name, self.whole(times))[0]
                    break
            else:
                raise Unsupported(f"a size of {dim}")
        return self.sizes[dim]

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def tensors(self) -> list[Any]:
        """What is known, as far as a node uses it."""
        used = {name for node in self.nodes for name in node.input}
        return [
            self.onnx.numpy_helper.from_array(array, name)
            for name, array in self.known.values()
            if name in used
        ]
