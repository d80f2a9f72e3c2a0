"""JAX's gather, as indexing makes it: one block, or along one axis, for all rows alike or for each
its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from idrl.onnx.graph import Unsupported, Value
from idrl.onnx.values import Values


def gather(values: Values, equation: Any, x: Value, where: Value) -> Value:
    how, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    shape = equation.invars[0].aval.shape
    index_shape = equation.invars[1].aval.shape
    if len(index_shape) == 1 and isinstance(where.held, np.ndarray):
        return _block(values, equation, values.full(x, shape), where.held)
    if tuple(how.collapsed_slice_dims) != tuple(how.start_index_map) or index_shape[-1] != 1:
        raise Unsupported("gather of blocks")
    (axis,) = how.start_index_map
    others = [i for i in range(len(shape)) if i != axis]
    x = values.full(x, shape)
    where = values.reshaped(values.full(where, index_shape), index_shape[:-1])
    if how.operand_batching_dims:
        return _each(values, equation, x, where, axis)
    if any(sizes[i] != shape[i] for i in others):
        raise Unsupported("gather of part of an axis")
    # ONNX puts the axes of the index where the axis was, JAX where `offset_dims` leaves room.
    count = len(where.shape)
    made = (*shape[:axis], *where.shape, *shape[axis + 1 :])
    found = values.add(made, "Gather", x, where, axis=axis)
    index_axes = iter(range(axis, axis + count))
    kept = iter([i for i in range(len(made)) if not axis <= i < axis + count])
    order = tuple(next(kept if i in how.offset_dims else index_axes) for i in range(len(made)))
    return values.transposed(found, order)


def _block(values: Values, equation: Any, x: Value, start: np.ndarray) -> Value:
    """A slice: where it begins is known. JAX writes it so where the batch is of any size."""
    how, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    cut = []
    for axis, first in zip(how.start_index_map, map(int, start), strict=True):
        if sizes[axis] == x.shape[axis]:
            continue
        if not isinstance(sizes[axis], int):
            raise Unsupported("a slice of the batch")
        cut.append((axis, first, first + sizes[axis]))
    if any(n != x.shape[i] for i, n in enumerate(sizes) if i not in how.start_index_map) or tuple(
        how.offset_dims
    ) != tuple(range(len(equation.outvars[0].aval.shape))):
        raise Unsupported("gather of blocks")
    if cut:
        axes, starts, ends = (values.graph.whole(*column) for column in zip(*cut, strict=True))
        x = values.add(tuple(sizes), "Slice", x, starts, ends, axes)
    left = tuple(n for i, n in enumerate(sizes) if i not in how.collapsed_slice_dims)
    return values.reshaped(x, left)


def _each(values: Values, equation: Any, x: Value, where: Value, axis: int) -> Value:
    """`take_along_axis`: the index has an axis for each of the rows, and what is taken is whole in
    the axes that it does not have."""
    how = equation.params["dimension_numbers"]
    out = equation.outvars[0].aval.shape
    batching = dict(zip(how.start_indices_batching_dims, how.operand_batching_dims, strict=True))
    rest = [i for i in range(len(where.shape)) if i not in batching]
    if len(rest) > 1 or len(out) != len(x.shape):
        raise Unsupported("gather of blocks")
    # In the order of the operand's axes: its rows, the axis itself, and those taken whole.
    place = {operand: index for index, operand in batching.items()}
    index_axes = [i for i in range(len(out)) if i not in how.offset_dims]  # of the output
    sources = [place.get(i, rest[0] if i == axis and rest else None) for i in range(len(out))]
    order = [s for s in sources if s is not None]
    where = values.transposed(where, tuple(order))
    made = tuple(
        x.shape[i] if s is None else equation.invars[1].aval.shape[s] for i, s in enumerate(sources)
    )
    if order != sorted(order) or [i for i, s in enumerate(sources) if s is not None] != index_axes:
        raise Unsupported("gather that transposes")
    unit = tuple(1 if s is None else n for n, s in zip(made, sources, strict=True))
    index = values.full(values.reshaped(where, unit), made)
    return values.add(made, "GatherElements", x, index, axis=axis)
