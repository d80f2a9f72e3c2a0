"""Operations number by number: they broadcast as ONNX's own do."""

from __future__ import annotations

from typing import Any

import numpy as np

from idrl.onnx.graph import Shape, Unsupported, Value
from idrl.onnx.values import Values


class _Writer:
    """Nodes of one shape, for operations that are several of ONNX's."""

    def __init__(self, values: Values, shape: Shape, equation: Any):
        self.values, self.shape, self.params = values, shape, equation.params
        self.dtype = np.dtype(equation.invars[0].aval.dtype)
        self.out_dtype = np.dtype(equation.outvars[0].aval.dtype)

    def __call__(self, kind: str, *inputs: Value, **attributes: Any) -> Value:
        return self.values.add(self.shape, kind, *inputs, **attributes)

    def number(self, value: float) -> Value:
        return self.values.of(np.array(value, self.dtype))

    def cast(self, x: Value, dtype: Any) -> Value:
        kind = self.values.graph.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self("Cast", x, to=kind)


def apply(values: Values, equation: Any, name: str, given: list[Value]) -> Value:
    rank = max(len(value.shape) for value in given)
    padded = [(1,) * (rank - len(value.shape)) + value.shape for value in given]
    shape = tuple(next((n for n in dims if n != 1), 1) for dims in zip(*padded, strict=True))
    if all(isinstance(value.held, np.ndarray) for value in given):
        arrays = [np.broadcast_to(value.held, shape) for value in given]
        return values.computed(equation, arrays)[0]
    return FORMS[name](_Writer(values, shape, equation), *given)


def _plain(kind: str):
    return lambda w, *x: w(kind, *x)


def _logical(kind: str):
    def form(w, *x):
        if w.dtype != bool:
            raise Unsupported(f"{kind.lower()} of {w.dtype}")
        return w(kind, *x)

    return form


def _extreme(kind: str, of_truths: str):
    return lambda w, *x: w(of_truths if w.dtype == bool else kind, *x)


def _compared(kind: str, negated: bool = False):
    def form(w, a, b):
        if w.dtype.kind in "iu" and w.dtype.itemsize < 4:
            a, b = w.cast(a, np.int32), w.cast(b, np.int32)
        found = w(kind, a, b)
        return w("Not", found) if negated else found

    return form


def _select(w, which, *cases):
    if w.dtype != bool or len(cases) != 2:
        raise Unsupported("select_n of more than two cases")
    return w("Where", which, cases[1], cases[0])


def _integer_pow(w, x):
    y = w.params["y"]
    if y == 2:
        return w("Mul", x, x)
    if y == -1:
        return w("Reciprocal", x)
    return w("Pow", x, w.number(y))


def _log1p(w, x):
    """ONNX has none, and log(1 + x) loses all of a small x. What rounding took from 1 + x is put
    back by the ratio of x to what is left of it (Kahan)."""
    above = w("Add", x, w.number(1))
    left = w("Sub", above, w.number(1))
    log = w("Log", above)
    kept = w("Mul", log, w("Div", x, left))
    small = w("Where", w("Equal", left, w.number(0)), x, kept)
    return w("Where", w("Greater", x, w.number(1)), log, small)


def _is_finite(w, x):
    return w("Not", w("Or", w("IsNaN", x), w("IsInf", x)))


def _rounded(w, x):
    if int(w.params["rounding_method"]) != 1:
        raise Unsupported("round away from zero")
    return w("Round", x)


def _remainder(w, a, b):
    return w("Mod", a, b, fmod=1)


def _expm1(w, x):
    """tanh(x/2)·(exp(x) + 1), which keeps small numbers; below -1 there are none to keep."""
    exp = w("Exp", x)
    careful = w("Mul", w("Tanh", w("Mul", x, w.number(0.5))), w("Add", exp, w.number(1)))
    return w("Where", w("Greater", x, w.number(1)), w("Sub", exp, w.number(1)), careful)


FORMS = {
    "abs": _plain("Abs"), "add": _plain("Add"), "add_any": _plain("Add"), "and": _logical("And"),
    "ceil": _plain("Ceil"), "clamp": lambda w, low, x, high: w("Min", w("Max", x, low), high),
    "convert_element_type": lambda w, x: x if w.dtype == w.out_dtype else w.cast(x, w.out_dtype),
    "copy": lambda w, x: x, "cos": _plain("Cos"), "div": _plain("Div"),
    "eq": _compared("Equal"), "erf": _plain("Erf"), "exp": _plain("Exp"), "expm1": _expm1,
    "floor": _plain("Floor"), "ge": _compared("GreaterOrEqual"), "gt": _compared("Greater"),
    "integer_pow": _integer_pow, "is_finite": _is_finite, "le": _compared("LessOrEqual"),
    "log": _plain("Log"), "log1p": _log1p, "logistic": _plain("Sigmoid"),
    "lt": _compared("Less"), "max": _extreme("Max", "Or"), "min": _extreme("Min", "And"),
    "mul": _plain("Mul"), "ne": _compared("Equal", negated=True), "neg": _plain("Neg"),
    "not": _logical("Not"), "or": _logical("Or"), "pow": _plain("Pow"), "rem": _remainder,
    "round": _rounded, "rsqrt": lambda w, x: w("Reciprocal", w("Sqrt", x)),
    "select_n": _select, "sign": _plain("Sign"), "sin": _plain("Sin"), "sqrt": _plain("Sqrt"),
    "square": lambda w, x: w("Mul", x, x), "stop_gradient": lambda w, x: x, "sub": _plain("Sub"),
    "tan": _plain("Tan"), "tanh": _plain("Tanh"), "xor": _logical("Xor"),
}  # fmt: skip
