"""Exported agents beside the originals: whether they say the same, how large and how fast.

    python -m benchmarks.export [--out results/export] [--observations 10000] [AGENT...]

Weights are as they are drawn: what is compared is the function, not what was learned. Everything
runs on one thread of one core.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from idrl.actions import Box
from idrl.agents import make_agent
from idrl.agents.registry import agent_names
from idrl.config import resolve
from idrl.errors import IdrlError
from idrl.runs import exporting
from idrl.runs.policy import Policy

CHUNK = 250
CLOSE = 1e-4  # of the spread: what separates the best two where an action may differ
IMAGES = ("dqn", "rainbow", "dqn-ids", "c51-ids", "qrdqn-ids")
TASKS = {
    "cartpole": ((4,), 6),
    "minatar/breakout": ((10, 10, 4), 6),
    "atari/pong": ((84, 84, 4), 6),
}
BOX = Box((-2.0, -1.0), (2.0, 3.0))


class Agreement(NamedTuple):
    """Between a function and its export, over many observations."""

    values: float  # the largest error of mu, sigma, rho2 and info_gain, relative to their size
    ratios: float
    actions: int  # that differ where the best two are apart (of continuous ones: by 1e-5)
    close: int  # observations where they are not


def policy_of(name: str, task: str) -> Policy:
    """An agent with weights as they are drawn; with an actor it is on observations of 5 numbers."""
    continuous = name in agent_names(True)
    config = resolve(name, "pendulum" if continuous else task)
    shape, actions = ((5,), BOX) if continuous else TASKS[task]
    agent = make_agent(config.spec, shape, actions)
    example = jnp.asarray(next(observations(agent, 8)))
    state = agent.init(jax.random.key(0), example)
    return Policy(config, agent, state.params, state.prior, 0)


def observations(agent: Any, count: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Random ones in chunks: bytes, boards of ones and zeros, or normal numbers."""
    rng = np.random.default_rng(seed)
    for start in range(0, count, CHUNK):
        shape = (min(CHUNK, count - start), *agent.obs_shape)
        if agent.spec.trunk.takes_bytes:
            yield rng.integers(0, 256, shape, np.uint8)
        elif len(shape) == 4:
            yield (rng.random(shape) < 0.1).astype(np.float32)
        else:
            yield rng.normal(size=shape).astype(np.float32)


def reference(policy: Policy, rule: str) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """The agent in JAX, asked as training asks it; quantiles at their midpoints."""
    agent = policy.agent
    spec = agent.spec
    part = spec.evaluate.without_epsilon if rule == "evaluate" else spec.explore.undithered

    @jax.jit
    def decide(params, prior, obs):
        count = len(obs)
        decision, _ = agent.choose(
            part, params, prior, obs, jnp.ones(count, bool), agent.blank_memory(count),
            jax.random.key(3), jnp.int32(policy.config.training.steps), None,
            noisy=rule == "explore", midpoints=True,
        )  # fmt: skip
        said = [getattr(decision, name) for name in exporting.OUTPUTS[1:]]
        if decision.candidates is not None:
            said = [x[:, 1:] for x in said]  # the actor's own, and what it became
        return decision.taken, *said

    def call(obs):
        found = jax.device_get(decide(policy.params, policy.prior, obs))
        return dict(zip(exporting.OUTPUTS, found, strict=True))

    return call


def onnx_session(path: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def reader(path: Path) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
    """An exported file as a function, by what reads it."""
    if path.suffix == ".onnx":
        session = onnx_session(path)
        return lambda obs: dict(
            zip(
                exporting.OUTPUTS, session.run(exporting.OUTPUTS, {"observation": obs}), strict=True
            )
        )
    call = jax.jit(jax.export.deserialize(bytearray(path.read_bytes())).call)
    return lambda obs: jax.device_get(call(obs))


def said(call: Callable[[np.ndarray], Any], agent: Any, count: int) -> dict[str, np.ndarray]:
    """Of `count` observations."""
    found = [call(obs) for obs in observations(agent, count)]
    return {name: np.concatenate([x[name] for x in found]) for name in exporting.OUTPUTS}


def agreement(policy: Policy, rule: str, a: dict[str, Any], b: dict[str, Any]) -> Agreement:
    """What the original said, and its export. An error is relative to the number itself or, where
    that is near 0, to the root mean square of its kind; the mean of atoms (C51) to the largest of
    them, since it is a sum of all."""
    for name in exporting.OUTPUTS:
        assert (a[name].shape, a[name].dtype) == (b[name].shape, b[name].dtype), name
    head = policy.agent.heads[policy.agent.q_name]
    atom = max(abs(getattr(head, "v_min", 0.0)), abs(getattr(head, "v_max", 0.0)))
    errors = {
        name: _error(a[name], b[name], atom if name == "mu" else 0.0)
        for name in exporting.OUTPUTS[1:]
    }
    ratios = errors.pop("ratio")
    apart, differ = _actions(policy, rule, a, b)
    return Agreement(max(errors.values()), ratios, int((differ & apart).sum()), int((~apart).sum()))


def _error(a: np.ndarray, b: np.ndarray, least: float) -> float:
    size = np.maximum(np.abs(a), max(np.sqrt(np.mean(a.astype(np.float64) ** 2)), least))
    return float(np.max(np.abs(a - b) / np.maximum(size, np.finfo(np.float32).tiny)))


def _actions(policy, rule, a, b) -> tuple[np.ndarray, np.ndarray]:
    """Where the best two are apart, and where the actions differ."""
    if isinstance(policy.agent.actions, Box):
        differ = (np.abs(a["action"] - b["action"]) > 1e-5 * np.array(BOX.high)).any(1)
        return np.ones(len(differ), bool), differ
    part = getattr(policy.agent.spec, rule)
    score = (
        -a["ratio"] if part.minimises_ratio else a["mu"] + getattr(part, "lam", 0.0) * a["sigma"]
    )
    ranked = np.sort(score, -1)
    apart = ranked[:, -1] - ranked[:, -2] > CLOSE * (ranked[:, -1] - ranked[:, 0])
    return apart, a["action"] != b["action"]


def milliseconds(
    call: Callable[[np.ndarray], Any], obs: np.ndarray, budget_s: float = 0.5
) -> float:
    """Of one call: the tenth percentile, which other work on the machine changes little."""
    call(obs)
    times: list[float] = []
    end = time.perf_counter() + budget_s
    while len(times) < 10 or (time.perf_counter() < end and len(times) < 2_000):
        start = time.perf_counter()
        call(obs)
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.percentile(times, 10))


def rows(name: str, task: str, count: int) -> Iterator[dict[str, Any]]:
    policy = policy_of(name, task)
    shown = "continuous" if isinstance(policy.agent.actions, Box) else task
    batches = {n: next(observations(policy.agent, n)) for n in (1, 64)}
    for rule in exporting.RULES:
        jax_call = reference(policy, rule)
        truth = None
        for kind in exporting.READERS:
            row = {"agent": name, "task": shown, "rule": rule, "format": kind[1:]}
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"policy{kind}"
                try:
                    policy.export(path, rule=rule)
                except IdrlError as error:
                    yield row | {"exported": "no: it draws" if "by chance" in str(error) else error}
                    continue
                call = reader(path)
                truth = said(jax_call, policy.agent, count) if truth is None else truth
                found = agreement(policy, rule, truth, said(call, policy.agent, count))
                row |= {"exported": "yes", "observations": count, **found._asdict()}
                row |= {"kB": round(path.stat().st_size / 1e3)}
                for size, obs in batches.items():
                    row[f"ms_{size}"] = milliseconds(call, obs)
                    row[f"jax_ms_{size}"] = milliseconds(jax_call, obs)
            yield row


COLUMNS = (
    "agent", "task", "rule", "format", "exported", "observations", "values", "ratios", "actions",
    "close", "kB", "ms_1", "ms_64", "jax_ms_1", "jax_ms_64",
)  # fmt: skip


def markdown(table: list[dict[str, Any]]) -> str:
    """What the page shows: ONNX, with StableHLO's size and speed beside it."""
    head = (
        "| agent | task | rule | values | ratios | actions | close | ONNX kB | ms | ms of 64 "
        "| JAX ms | JAX ms of 64 | StableHLO kB |\n|" + " - |" * 3 + " -: |" * 10 + "\n"
    )
    lines = []
    for row in table:
        if row["format"] != "onnx":
            continue
        key = [row[name] for name in ("agent", "task", "rule")]
        if row["exported"] != "yes":
            lines.append(f"| {' | '.join(key)} | {row['exported']} |" + " |" * 9)
            continue
        twin = next(
            r for r in table if [r[n] for n in ("agent", "task", "rule")] == key and r is not row
        )
        cells = [f"{float(row[n]):.0e}" for n in ("values", "ratios")]
        cells += [str(row[n]) for n in ("actions", "close")] + [f"{int(row['kB']):,}"]
        cells += [f"{float(row[n]):.3g}" for n in ("ms_1", "ms_64", "jax_ms_1", "jax_ms_64")]
        lines.append(f"| {' | '.join(key + cells)} | {int(twin['kB']):,} |")
    return head + "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/export"))
    parser.add_argument("--observations", type=int, default=10_000)
    parser.add_argument("agents", nargs="*")
    options = parser.parse_args()
    one = " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + one  # before JAX is first used
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core
    names = options.agents or agent_names()
    cases = [(name, "cartpole") for name in names]
    cases += [(name, task) for task in list(TASKS)[1:] for name in names if name in IMAGES]
    table: list[dict[str, Any]] = []
    options.out.mkdir(parents=True, exist_ok=True)
    for name, task in cases:
        for row in rows(name, task, options.observations):
            table.append(row)
            print({k: v for k, v in row.items() if v != ""}, flush=True)
        with open(options.out / "export.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows({k: _short(v) for k, v in row.items()} for row in table)
        (options.out / "export.md").write_text(markdown(table), encoding="utf-8")


def _short(value: Any) -> Any:
    return f"{value:.3g}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()
