"""A jaxpr becomes a graph: inputs, outputs, and what is known before either."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from idrl.onnx import elementwise, structural
from idrl.onnx.graph import IR_VERSION, OPSET, Graph, Unsupported, Value
from idrl.onnx.values import Values

__all__ = ["OPSET", "Unsupported", "convert"]

Form = Callable[..., Any]
FORMS: dict[str, Form] = {**elementwise.FORMS, **structural.FORMS}
# Calls of other jaxprs, by the parameter that holds them.
_CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "remat": "jaxpr",
    "checkpoint": "jaxpr",
}  # fmt: skip


def convert(
    closed: Any, weights: Sequence[np.ndarray], inputs: Sequence[str], outputs: Sequence[str],
    about: Mapping[str, str],
) -> bytes:  # fmt: skip
    """The file of a closed jaxpr. Its first arguments are the `weights`, which become part of it;
    the others are `inputs` with a first axis of the same free size. `about` is written into it as
    metadata. Raises `Unsupported`."""
    graph = Graph()
    values = Values(graph)
    arguments = [values.of(np.asarray(x)) for x in weights]
    free = closed.jaxpr.invars[len(weights) :]
    for name, variable in zip(inputs, free, strict=True):
        shape = variable.aval.shape
        if not graph.sizes:
            size = graph.node("Shape", name, start=0, end=1)[0]
            graph.sizes[shape[0]] = size
        arguments.append(Value(name, shape))
    found = _run(values, closed.jaxpr, closed.consts, arguments)
    helper = graph.onnx.helper
    for name, variable, value in zip(outputs, closed.jaxpr.outvars, found, strict=True):
        whole = values.full(value, variable.aval.shape)
        graph.nodes.append(helper.make_node("Identity", [graph.name(whole)], [name]))
    made = helper.make_graph(
        _needed(graph.nodes, outputs), "policy",
        [_declared(graph, *pair) for pair in zip(inputs, free, strict=True)],
        [_declared(graph, *pair) for pair in zip(outputs, closed.jaxpr.outvars, strict=True)],
    )  # fmt: skip
    graph.nodes = list(made.node)
    made.initializer.extend(graph.tensors())
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
        producer_name="idrl", producer_version=about.get("version", ""),
    )  # fmt: skip
    helper.set_model_props(model, dict(about))
    graph.onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


def _run(values: Values, jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Value]):
    known: dict[Any, Value] = dict(zip(jaxpr.invars, arguments, strict=True))
    known |= {v: values.of(np.asarray(c)) for v, c in zip(jaxpr.constvars, consts, strict=True)}

    def read(atom: Any) -> Value:
        if not hasattr(atom, "val"):
            return known[atom]
        return values.of(np.asarray(atom.val, atom.aval.dtype))  # a Python number has no type

    for equation in jaxpr.eqns:
        name, given = equation.primitive.name, [read(atom) for atom in equation.invars]
        if name in _CALLS:
            inner = equation.params[_CALLS[name]]
            consts = getattr(inner, "consts", ())
            found = _run(values, getattr(inner, "jaxpr", inner), consts, given)
        else:
            found = _one(values, equation, name, given)
        known |= dict(zip(equation.outvars, found, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _one(values: Values, equation: Any, name: str, given: list[Value]) -> list[Value]:
    lazy = name in elementwise.FORMS or name in structural.LAZY
    if all(isinstance(value.held, np.ndarray) for value in given) and not lazy:
        whole = all(isinstance(n, int) for v in equation.outvars for n in v.aval.shape)
        if whole:  # known now
            shapes = [atom.aval.shape for atom in equation.invars]
            arrays = [
                np.broadcast_to(v.held, shape) for v, shape in zip(given, shapes, strict=True)
            ]
            return values.computed(equation, arrays)
    if name not in FORMS:
        raise Unsupported(name)
    if name in elementwise.FORMS:
        return [elementwise.apply(values, equation, name, given)]
    found = FORMS[name](values, equation, *given)
    return found if isinstance(found, list) else [found]


def _needed(nodes: list[Any], outputs: Sequence[str]) -> list[Any]:
    """Those that an output depends on."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted |= set(node.input)
            kept.append(node)
    return kept[::-1]


def _declared(graph: Graph, name: str, variable: Any) -> Any:
    helper, aval = graph.onnx.helper, variable.aval
    shape = [n if isinstance(n, int) else "batch" for n in aval.shape]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(jax.dtypes.canonicalize_dtype(aval.dtype)))
    return helper.make_tensor_value_info(name, kind, shape)
