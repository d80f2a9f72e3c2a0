"""A function of JAX as an ONNX graph: its jaxpr, one operation after the other.

Written here and not by a general converter, because a policy is a few dozen kinds of operations,
and because what is traced is the agent's own code: a graph cannot differ from it by a layer that
was written twice. It knows nothing of agents.
"""

from idrl.onnx.converting import OPSET, Unsupported, convert
from idrl.onnx.graph import package

__all__ = ["OPSET", "Unsupported", "convert", "package"]
