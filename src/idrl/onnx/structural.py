"""Operations that move numbers, sum them up or multiply matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from idrl.onnx.gathering import gather
from idrl.onnx.graph import Shape, Unsupported, Value
from idrl.onnx.values import Values


def _whole(values: Values, equation: Any, value: Value, number: int = 0) -> Value:
    return values.full(value, equation.invars[number].aval.shape)


def _out(equation: Any) -> Shape:
    return equation.outvars[0].aval.shape


# -- that a broadcast may wait for -----------------------------------------------------------------


def _broadcast_in_dim(values: Values, equation: Any, x: Value) -> Value:
    axes = equation.params["broadcast_dimensions"]
    shape: list[Any] = [1] * len(_out(equation))
    for axis, n in zip(axes, x.shape, strict=True):
        shape[axis] = n
    return values.reshaped(x, tuple(shape))


def _squeeze(values: Values, equation: Any, x: Value) -> Value:
    gone = equation.params["dimensions"]
    return values.reshaped(x, tuple(n for i, n in enumerate(x.shape) if i not in gone))


def _expand_dims(values: Values, equation: Any, x: Value) -> Value:
    shape = list(x.shape)
    for axis in sorted(equation.params["dimensions"]):
        shape.insert(axis, 1)
    return values.reshaped(x, tuple(shape))


def _transpose(values: Values, equation: Any, x: Value) -> Value:
    return values.transposed(x, tuple(equation.params["permutation"]))


def _dim_as_value(values: Values, equation: Any) -> Value:
    size = Value(values.graph.size(equation.params["dim"]), (1,))
    number = values.reshaped(size, ())
    return values.add((), "Cast", number, to=values.graph.onnx.TensorProto.INT32)


LAZY = {
    "broadcast_in_dim": _broadcast_in_dim, "squeeze": _squeeze, "expand_dims": _expand_dims,
    "transpose": _transpose, "dim_as_value": _dim_as_value,
}  # fmt: skip


# -- moving ----------------------------------------------------------------------------------------


def _reshape(values: Values, equation: Any, x: Value) -> Value:
    if equation.params.get("dimensions") is not None:
        raise Unsupported("reshape that transposes")
    return values.reshaped(_whole(values, equation, x), _out(equation))


def _sliced(values: Values, x: Value, shape: Shape, cut: list[tuple[int, int, int, int]]) -> Value:
    """`cut`: (axis, from, to, step)."""
    if not cut:
        return x
    axes, starts, ends, steps = (values.graph.whole(*column) for column in zip(*cut, strict=True))
    return values.add(shape, "Slice", x, starts, ends, axes, steps)


def _slice(values: Values, equation: Any, x: Value) -> Value:
    p, x = equation.params, _whole(values, equation, x)
    steps = p["strides"] or (1,) * len(x.shape)
    cut = []
    for axis, (start, end, step) in enumerate(
        zip(p["start_indices"], p["limit_indices"], steps, strict=True)
    ):
        if (start, step) == (0, 1) and end == x.shape[axis]:
            continue
        if not all(isinstance(n, int) for n in (start, end, step)):
            raise Unsupported("a slice of the batch")
        cut.append((axis, start, end, step))
    return _sliced(values, x, _out(equation), cut)


def _rev(values: Values, equation: Any, x: Value) -> Value:
    x = _whole(values, equation, x)
    cut = [(axis, -1, -(2**31), -1) for axis in equation.params["dimensions"]]
    return _sliced(values, x, _out(equation), cut)


def _concatenate(values: Values, equation: Any, *parts: Value) -> Value:
    whole = [_whole(values, equation, part, i) for i, part in enumerate(parts)]
    return values.add(_out(equation), "Concat", *whole, axis=equation.params["dimension"])


def _stack(values: Values, equation: Any, *parts: Value) -> Value:
    axis, shape = equation.params["axis"], _out(equation)
    one = (*shape[:axis], 1, *shape[axis + 1 :])
    whole = []
    for i, part in enumerate(parts):
        part = _whole(values, equation, part, i)
        whole.append(values.add(one, "Unsqueeze", part, values.graph.whole(axis)))
    return values.add(shape, "Concat", *whole, axis=axis)


def _unstack(values: Values, equation: Any, x: Value) -> list[Value]:
    axis, x = equation.params["axis"], _whole(values, equation, x)
    one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    cuts = ([(axis, i, i + 1, 1)] for i in range(len(equation.outvars)))
    return [values.reshaped(_sliced(values, x, one, cut), _out(equation)) for cut in cuts]


def _split(values: Values, equation: Any, x: Value) -> list[Value]:
    sizes = values.graph.whole(*map(int, equation.params["sizes"]))
    x = _whole(values, equation, x)
    outs = equation.outvars
    names = values.graph.node(
        "Split", values.graph.name(x), sizes, outputs=len(outs), axis=equation.params["axis"]
    )
    return [Value(name, v.aval.shape) for name, v in zip(names, outs, strict=True)]


def _pad(values: Values, equation: Any, x: Value, fill: Value) -> Value:
    config, x = equation.params["padding_config"], _whole(values, equation, x)
    if any(inside or low < 0 or high < 0 for low, high, inside in config):
        raise Unsupported("pad that removes or spreads")
    if not any(low or high for low, high, _ in config):
        return x
    pads = [low for low, _, _ in config] + [high for _, high, _ in config]
    return values.add(_out(equation), "Pad", x, values.graph.whole(*pads), fill)


def _cumsum(values: Values, equation: Any, x: Value) -> Value:
    p = equation.params
    axis = values.graph.constant(np.array(p["axis"], np.int64))
    x = _whole(values, equation, x)
    return values.add(_out(equation), "CumSum", x, axis, reverse=int(p["reverse"]))


# -- summing up ------------------------------------------------------------------------------------


def _reduced(kind: str):
    def form(values: Values, equation: Any, x: Value) -> Value:
        axes, shape = list(map(int, equation.params["axes"])), _out(equation)
        x = _whole(values, equation, x)
        if kind == "ReduceSum":  # the one whose axes are an input in this opset
            return values.add(shape, kind, x, values.graph.whole(*axes), keepdims=0)
        return values.add(shape, kind, x, axes=axes, keepdims=0)

    return form


def _truths(kind: str):
    """Of booleans, which ONNX cannot reduce."""
    reduced = _reduced(kind)

    def form(values: Values, equation: Any, x: Value) -> Value:
        types = values.graph.onnx.TensorProto
        x = values.add(x.shape, "Cast", x, to=types.INT32)
        found = reduced(values, equation, x)
        return values.add(found.shape, "Cast", found, to=types.BOOL)

    return form


def _best(kind: str):
    def form(values: Values, equation: Any, x: Value) -> Value:
        (axis,) = equation.params["axes"]
        types = values.graph.onnx.TensorProto
        x = _whole(values, equation, x)
        if equation.invars[0].aval.dtype == bool:
            x = values.add(x.shape, "Cast", x, to=types.INT32)
        found = values.add(_out(equation), kind, x, axis=int(axis), keepdims=0)
        return values.add(found.shape, "Cast", found, to=types.INT32)

    return form


# -- products --------------------------------------------------------------------------------------


def _dot_general(values: Values, equation: Any, left: Value, right: Value) -> Value:
    """As MatMul of `[batch, free, summed]` and `[batch, summed, free]`."""
    (sum_l, sum_r), (batch_l, batch_r) = equation.params["dimension_numbers"]
    shape_l, shape_r = (v.aval.shape for v in equation.invars)
    free_l = [i for i in range(len(shape_l)) if i not in (*sum_l, *batch_l)]
    free_r = [i for i in range(len(shape_r)) if i not in (*sum_r, *batch_r)]
    batch = tuple(shape_l[i] for i in batch_l)
    size = math.prod(shape_l[i] for i in sum_l)
    # A broadcast on the left may go on waiting where nothing but rows depend on it.
    waiting = not batch and len(sum_l) == 1
    kept = left.shape if waiting else shape_l
    left = values.full(left, tuple(shape_l[i] if i in sum_l else n for i, n in enumerate(kept)))
    right = values.full(right, shape_r)
    rows, columns = tuple(left.shape[i] for i in free_l), tuple(shape_r[i] for i in free_r)
    wide = math.prod(columns)
    left = values.transposed(left, (*batch_l, *free_l, *sum_l))
    right = values.transposed(right, (*batch_r, *sum_r, *free_r))
    many = rows if waiting else (math.prod(rows),)
    left = values.reshaped(left, (*batch, *many, size))
    right = values.reshaped(right, (*batch, size, wide))
    if isinstance(left.held, np.ndarray) and isinstance(right.held, np.ndarray):
        found = values.of(np.matmul(left.held.astype(np.float64), right.held).astype(np.float32))
    elif waiting and not rows:
        row = values.add((1, wide), "MatMul", values.reshaped(left, (1, size)), right)
        found = row
    else:
        found = values.add((*batch, *many, wide), "MatMul", left, right)
    return values.reshaped(found, (*batch, *rows, *columns))


def _conv(values: Values, equation: Any, x: Value, kernel: Value) -> Value:
    p = equation.params
    lhs, rhs, out = p["dimension_numbers"]
    if any(n != 1 for n in p["lhs_dilation"]) or p["batch_group_count"] != 1:
        raise Unsupported("a transposed convolution")
    shape = _out(equation)
    x = values.transposed(_whole(values, equation, x), tuple(lhs))
    kernel = values.transposed(_whole(values, equation, kernel, 1), tuple(rhs))
    pads = [low for low, _ in p["padding"]] + [high for _, high in p["padding"]]
    found = values.add(
        tuple(shape[i] for i in out), "Conv", x, kernel, strides=list(p["window_strides"]),
        pads=list(pads), dilations=list(p["rhs_dilation"]), group=p["feature_group_count"],
    )  # fmt: skip
    return values.transposed(found, tuple(int(i) for i in np.argsort(out)))


FORMS = LAZY | {
    "argmax": _best("ArgMax"), "argmin": _best("ArgMin"), "concatenate": _concatenate,
    "conv_general_dilated": _conv, "cumsum": _cumsum,
    "dot_general": _dot_general, "gather": gather, "pad": _pad,
    "reduce_and": _truths("ReduceMin"), "reduce_max": _reduced("ReduceMax"),
    "reduce_min": _reduced("ReduceMin"), "reduce_or": _truths("ReduceMax"),
    "reduce_prod": _reduced("ReduceProd"), "reduce_sum": _reduced("ReduceSum"),
    "reshape": _reshape, "rev": _rev, "slice": _slice, "split": _split, "stack": _stack,
    "unstack": _unstack,
}  # fmt: skip
