"""Finds the operation that made the first NaN or infinity of a computation.

The computation is run one operation at a time and every result is looked at, so this is slow; it
is meant for one iteration that is known to go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class _Nan(Exception):
    """Where the first NaN was made."""


def first_bad_operation(function: Callable, *args: Any) -> str:
    """The first operation with a NaN in its result and none in what it was given, with the line it
    stands in; else the first such that made an infinity; empty where there is neither."""
    flat, tree = jax.tree.flatten(args)
    flat = [jnp.asarray(x) for x in flat]
    closed = jax.make_jaxpr(lambda *leaves: function(*jax.tree.unflatten(tree, leaves)))(*flat)
    infinities: list[str] = []
    try:
        _walk(closed.jaxpr, closed.consts, flat, infinities)
    except _Nan as found:
        return f"a NaN was made by {found}"
    for path, leaf in jax.tree_util.tree_flatten_with_path(args)[0]:
        if _holds(np.isnan, leaf):
            return f"a NaN was there before, in {jax.tree_util.keystr(path[1:])}"
    return f"an infinity was made by {infinities[0]}" if infinities else ""


def _walk(jaxpr: Any, consts: Sequence, args: Sequence, infinities: list[str]) -> list:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values |= dict(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if hasattr(atom, "val") else values[atom]

    for eqn in jaxpr.eqns:
        given = [read(atom) for atom in eqn.invars]
        out = _inner(eqn, given, infinities)
        if out is None:
            params: Any = eqn.primitive.get_bind_params(eqn.params)
            functions, params = params if isinstance(params, tuple) else ((), params)  # older JAX
            out = eqn.primitive.bind(*functions, *given, **params)
            out = out if eqn.primitive.multiple_results else [out]
            if _first(np.isnan, given, out):
                raise _Nan(_named(eqn))
            if not infinities and _first(np.isinf, given, out):
                infinities.append(_named(eqn))
        values |= dict(zip(eqn.outvars, out, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _inner(eqn: Any, given: list, infinities: list[str]) -> list | None:
    """What an operation that is made of others results in; None for any other."""
    params = eqn.params
    if eqn.primitive.name == "scan":
        return _scan(eqn, given, infinities)
    if eqn.primitive.name == "cond":
        inner, given = params["branches"][int(given[0])], given[1:]
    else:
        inner = params.get("call_jaxpr") or params.get("jaxpr")
    if inner is None or not hasattr(inner, "eqns") or len(inner.jaxpr.invars) != len(given):
        return None
    return _walk(inner.jaxpr, inner.consts, given, infinities)


def _scan(eqn: Any, given: list, infinities: list[str]) -> list:
    # How many are carried, and how many come a row a turn, versions of JAX say in different ways:
    # rows have an axis more than what the body sees of them.
    params, body = eqn.params, eqn.params["jaxpr"]
    kept = len(eqn.outvars) - _rows(eqn.outvars, body.jaxpr.outvars)
    fixed = len(given) - kept - _rows(eqn.invars, body.jaxpr.invars)
    consts, carry, rows = given[:fixed], given[fixed : fixed + kept], given[fixed + kept :]
    turns = range(params["length"])
    outs = []
    for i in reversed(turns) if params["reverse"] else turns:
        out = _walk(body.jaxpr, body.consts, [*consts, *carry, *(x[i] for x in rows)], infinities)
        carry = out[:kept]
        outs.append(out[kept:])
    if params["reverse"]:
        outs.reverse()
    return [*carry, *(jnp.stack(column) for column in zip(*outs, strict=True))]


def _rows(whole: Sequence, parts: Sequence) -> int:
    return sum(a.aval.ndim > b.aval.ndim for a, b in zip(whole, parts, strict=True))


def _first(test: Callable, given: Sequence, out: Sequence) -> bool:
    return any(_holds(test, x) for x in out) and not any(_holds(test, x) for x in given)


def _holds(test: Callable, x: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(x), jnp.floating) and bool(test(x).any())


def _named(eqn: Any) -> str:
    """`div` in losses.py:31 (huber): the line as JAX remembers it."""
    try:
        from jax._src.source_info_util import user_frame

        frame = user_frame(eqn.source_info.traceback)
        assert frame is not None
        place = f" in {Path(frame.file_name).name}:{frame.start_line} ({frame.function_name})"
    except Exception:  # JAX makes no promise about this function
        place = ""
    return f"`{eqn.primitive.name}`{place}"
