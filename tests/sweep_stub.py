"""What stands in for the process of a run in tests of sweeps: the same arguments, files and exit
statuses, and no training. `script.json` above its study says what each attempt does."""

import json
import os
import signal
import sys
import time
import tomllib
from hashlib import sha256
from pathlib import Path


def main() -> int:
    _, places, _, flag, *rest = sys.argv[1:]
    if flag == "--resume":
        out = Path(rest[0])
        config = tomllib.loads((out / "config.toml").read_text())
    else:
        text = Path(rest[0]).read_text()
        config, out = tomllib.loads(text), Path(rest[2])
        out.mkdir(parents=True)
        (out / "config.toml").write_text(text)
        (out / "run.json").write_text(json.dumps({"format": 1}))
    (out / "cores").write_text(places)
    with open(out / "attempts", "a") as file:
        file.write(flag + "\n")
    number = len((out / "attempts").read_text().splitlines())
    script = json.loads(os.environ.get("SWEEP_SCRIPT", "{}"))
    acts = next((acts for word, acts in script.items() if word in out.name), [])
    act = acts[number - 1] if number <= len(acts) else "done"
    if act == "fail":
        print("idrl: the dice fell off the table.")
        return 1
    if act == "memory":
        print("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes")
        return 1
    if act == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "wait":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
        evaluate(out, config, 0.1)
        time.sleep(60)
    if act == "leave":  # as an environment may that ends its process
        return 0
    evaluate(out, config, 1.0)
    finish(out, config["training"]["steps"])
    return 0


def finish(out: Path, steps: int) -> None:
    """The checkpoint of a run's end, which says that it is finished."""
    place = out / "checkpoints" / f"step-{steps:012d}"
    place.mkdir(parents=True)
    (place / "state.safetensors").write_bytes(b"")
    manifest = {"sha256": sha256(b"").hexdigest(), "steps": steps, "meta": {"sizes": {}}}
    (place / "manifest.json").write_text(json.dumps(manifest))


def evaluate(out: Path, config: dict, share: float) -> None:
    """The larger λ is, the better, to have something to search for."""
    lam, step = config["explore"].get("lam", 1.0), int(config["training"]["steps"] * share)
    lines = [
        f"{seed},{step},{lam * share},{lam * share}"
        for seed in range(config["seed"], config["seed"] + config["seeds"])
    ]
    head = ["seed,steps,return_mean,best"]
    (out / "evaluations.csv").write_text("\n".join(head + lines) + "\n")
    (out / "metrics.csv").write_text("\n".join(["seed,steps", *lines]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
