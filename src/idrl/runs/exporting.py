"""A trained agent for programs without it: one function of observations, as ONNX or StableHLO.

What is written is the agent's own code, traced with its weights in it and the size of the batch
left open. A function has no chance in it: whatever depends on a random key is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from jax.interpreters import partial_eval

from idrl import onnx
from idrl.actions import Box
from idrl.errors import IdrlError, in_a_line
from idrl.storage.files import check_writable, open_plain, sync
from idrl.system import words
from idrl.system.version import VERSION

RULES = ("evaluate", "explore")
OUTPUTS = ("action", "mu", "sigma", "rho2", "info_gain", "ratio")
DTYPES = ("float32", "uint8")
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")  # that a StableHLO file is for
READERS = {
    ".onnx": "onnxruntime.InferenceSession",
    ".stablehlo": "jax.export.deserialize",
}
_MOST = 2**31  # bytes of an ONNX file: it is one message of Protocol Buffers


class Function(NamedTuple):
    """The agent as a function of the named inputs, `[batch, ...]` each."""

    jaxpr: ClosedJaxpr  # weights are its first arguments
    weights: list[np.ndarray]
    inputs: dict[str, jax.ShapeDtypeStruct]

    def __call__(self, *inputs: Any) -> dict[str, jax.Array]:
        found = jaxpr_as_fun(self.jaxpr)(*self.weights, *inputs)
        return dict(zip(OUTPUTS, found, strict=True))


def export(policy: Any, path: str | Path, rule: str, mask: bool, dtype: str | None) -> Path:
    """Write `policy` to `path`, whose ending says as what. Nothing is there unless all of it is."""
    path = Path(path)
    check_target(path)
    _check_installed(path.suffix)
    function = trace(policy, rule, mask=mask, dtype=dtype)
    about = {
        "format": "idrl policy 1",
        "version": VERSION,
        "agent": policy.config.agent,
        "env": policy.config.env,
        "seed": str(policy.seed),
        "rule": rule,
    }
    write = _onnx if path.suffix == ".onnx" else _stablehlo
    try:
        made = write(policy, function, about)
    except IdrlError:
        raise
    except Exception as error:  # what a part of somebody's own computes
        raise IdrlError(
            f"{_named(policy)} cannot be written as {path.suffix}: {in_a_line(error)}."
        ) from error
    write_new(path, made)
    return path


def _check_installed(kind: str) -> None:
    if kind == ".onnx":
        onnx.package()
        return
    try:
        import flatbuffers  # noqa: F401 - what jax.export writes with
    except ImportError:
        raise IdrlError(
            "StableHLO needs a package that is not installed: pip install 'idrl[stablehlo]'."
        ) from None


def check_target(path: Path) -> None:
    """Refuse a place that nothing can be written to, before any work is done."""
    name = repr(str(path))
    if path.suffix not in READERS:
        raise IdrlError(
            f"{name} does not say what to export to; the name ends in {' or '.join(READERS)}."
        )
    try:
        exists = path.exists() or path.is_symlink()
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise IdrlError(f"{name} cannot be written: {error.strerror}.") from None
    if exists:
        raise IdrlError(f"{name} exists already; choose another name.")
    check_writable(path)


def write_new(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.draft-{os.getpid()}")
    try:
        draft.write_bytes(data)
        sync(draft)
        check_target(path)  # tracing takes seconds, in which others may have written it
        os.replace(draft, path)
    except OSError as error:
        raise IdrlError(f"{str(path)!r} cannot be written: {error}.") from None
    finally:
        draft.unlink(missing_ok=True)


def trace(policy: Any, rule: str, *, mask: bool = False, dtype: str | None = None) -> Function:
    """`policy` by the rule it is evaluated with, without an ε on top of it, or explores with.
    Refuses one that draws."""
    agent = policy.agent
    if rule not in RULES:
        raise IdrlError(f"rule is {rule!r}; it must be one of {', '.join(RULES)}.")
    if dtype not in (None, *DTYPES):
        raise IdrlError(f"dtype is {dtype!r}; it must be one of {', '.join(DTYPES)}.")
    if mask and isinstance(agent.actions, Box):
        raise IdrlError("continuous actions have no mask: omit it.")
    dtype = dtype or ("uint8" if agent.spec.trunk.takes_bytes else "float32")
    (batch,) = jax_export.symbolic_shape("batch")
    inputs = {"observation": jax.ShapeDtypeStruct((batch, *agent.obs_shape), dtype)}
    if mask:
        inputs["mask"] = jax.ShapeDtypeStruct((batch, agent.num_actions), bool)
    # An ε of evaluation makes episodes differ, as Atari's protocols want it, and one on top of a
    # rule that decides keeps it from going in circles; ε-greedy has nothing else, and is refused.
    spec = agent.spec
    part = spec.evaluate.without_epsilon if rule == "evaluate" else spec.explore.undithered
    leaves, tree = jax.tree.flatten(jax.device_get((policy.params, policy.prior)))

    def decided(key, weights, obs, allowed=None):
        params, prior = jax.tree.unflatten(tree, weights)
        count = obs.shape[0]
        decision, _ = agent.choose(
            part, params, prior, obs, jnp.ones(count, bool),
            agent.blank_memory(count), key, jnp.int32(policy.config.training.steps), allowed,
            noisy=rule == "explore", midpoints=True,
        )  # fmt: skip
        return _outputs(decision)

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves]
    key = jax.eval_shape(lambda: jax.random.key(0))
    try:
        traced = jax.jit(decided).trace(key, shapes, *inputs.values()).jaxpr
    except IdrlError:
        raise
    except Exception as error:  # of a part of somebody's own
        raise IdrlError(
            f"{_named(policy)} cannot be exported: a part of it does not work with a batch of any "
            "size; write x.shape[0] for that size, not len(x), and make no Python number of it "
            f"({in_a_line(error)})."
        ) from error
    jaxpr, used = partial_eval.dce_jaxpr(
        traced.jaxpr, [True] * len(OUTPUTS), [False] + [True] * (len(leaves) + len(inputs))
    )
    if used[0]:
        raise IdrlError(_draws(policy, rule))
    return Function(ClosedJaxpr(jaxpr, traced.consts), leaves, inputs)


def _outputs(decision: Any) -> tuple[jax.Array, ...]:
    """Of discrete actions `[B, A]`. Of continuous ones `[B, 1]`: what is said of the one taken."""
    said = [getattr(decision, name) for name in OUTPUTS[1:]]
    if decision.candidates is not None:
        number = jnp.maximum(decision.action, 0)[:, None]
        said = [jnp.take_along_axis(x, number, -1) for x in said]
    return decision.taken, *said


def _draws(policy: Any, rule: str) -> str:
    part = getattr(policy.agent.spec, rule)
    how = "explores" if rule == "explore" else "is evaluated"
    other = (
        "export the rule it is evaluated with: --rule evaluate, or rule='evaluate' in Python."
        if rule == "explore"
        else f"train one with another {rule}.kind, such as greedy."
    )
    return (
        f"{_named(policy)} {how} by chance (the rule {part.kind!r}, noise in its weights, or "
        f"candidates that it draws), and an exported function has none in it; {other}"
    )


def _named(policy: Any) -> str:
    return words.title(policy.config.agent, policy.config.env)


def _onnx(policy: Any, function: Function, about: dict[str, str]) -> bytes:
    if sum(x.nbytes for x in function.weights) >= _MOST:
        raise IdrlError(
            f"{_named(policy)} has 2 GB of weights or more, which no ONNX file holds; export it as "
            ".stablehlo instead."
        )
    try:
        return onnx.convert(function.jaxpr, function.weights, list(function.inputs), OUTPUTS, about)
    except onnx.Unsupported as what:
        raise IdrlError(
            f"{_named(policy)} cannot be written as ONNX: it computes {what}, for which idrl knows "
            "no operation there; export it as .stablehlo instead."
        ) from None


def _stablehlo(policy: Any, function: Function, about: dict[str, str]) -> bytes:
    def policy_function(*inputs):
        return function(*inputs)

    name = "_".join(("idrl", about["agent"], about["rule"]))
    policy_function.__name__ = re.sub(r"\W", "_", name, flags=re.ASCII)
    made = jax_export.export(jax.jit(policy_function), platforms=PLATFORMS)
    return bytes(made(*function.inputs.values()).serialize())


def refusal(path: Path) -> str | None:
    """Why a file is nothing to load, where it is an exported agent: what reads it. The file itself
    is not interpreted."""
    try:
        with open_plain(path, named=True) as file:
            start = file.read(64)
    except OSError:
        return None
    if start[8:9] == b"{":  # the header of a safetensors file: an agent under another name
        return None
    kind = path.suffix if path.suffix in READERS else None
    if start[:1] == b"\x08" and start[2:8] == b"\x12\x04idrl":  # ONNX by idrl, whatever its name
        kind = ".onnx"
    if kind is None:
        return None
    return (
        f"{str(path)!r} is for programs without idrl: {READERS[kind]} reads it. idrl.load takes a "
        "run folder, or a file that agent.save(…) wrote."
    )
