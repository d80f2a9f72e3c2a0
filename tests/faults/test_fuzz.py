"""Command lines and configs that nobody would write: each is accepted, or refused in a sentence."""

import json
import shutil
import string

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from idrl.agents import agent_names
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs import families
from idrl.runs import api
from idrl.schema import flat, to_dict

VALID = {name: to_dict(resolve(name, "deep_sea/4")) for name in ("dqn", "c51-ids")}
PATHS = sorted({path for config in VALID.values() for path in flat(config)})

# What people and programs write by mistake: of every type, at every edge.
NUMBERS = st.one_of(
    st.integers(-3, 100), st.integers(-(2**70), 2**70), st.floats(allow_nan=True),
    st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**53, 2**63, 10**12, 1e-300, 1e308, -0.0]),
)  # fmt: skip
WORDS = st.one_of(
    st.text(max_size=12),
    st.text(string.ascii_lowercase + "./?=&-_ ", max_size=20),
    st.sampled_from(["", " ", "\n", "\x00", "mlp", "ids", "ensemble", "nan", "inf", "[]", "[1,2]"]),
    st.sampled_from([*agent_names(), *families(), *PATHS]),
)
LEAVES = st.one_of(NUMBERS, WORDS, st.booleans())
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
SHAPES = st.one_of(LEAVES, st.lists(LEAVES, max_size=4))


class Accepted(Exception):
    """The input is fine; training would begin now."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Nothing is trained here: what would train says that it was asked to."""
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:

        def accept(*args, **kwargs):
            raise Accepted

        patch.setattr(api, "_go", accept)
        patch.setattr("idrl.cli.bandit._figure", accept)
        patch.setattr("idrl.cli.bandit._regret", accept)
        patch.setattr("idrl.bsuite.running.run_plan", accept)
        patch.chdir(folder)
        yield folder


def check_answer(place, capsys, arguments) -> None:
    """0 and training, or 2 and one sentence with nothing written."""
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    try:
        status = main(arguments)
    except Accepted:
        status = 0
    except SystemExit as end:  # --help and --version
        status = end.code
    told = capsys.readouterr()
    assert status in (0, 2), arguments
    if status == 2:
        assert told.err.startswith("idrl: "), arguments
        assert told.err.count("\n") == 1, told.err
        assert told.err.rstrip().endswith((".", "?", "…")), told.err
        assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before
    for new in place.iterdir():
        if new not in before:
            shutil.rmtree(new) if new.is_dir() else new.unlink()


def fuzz(cases, strategy, check) -> int:
    """Run `check` on so many cases; returns how many there were."""
    count = 0

    @settings(
        max_examples=cases, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def each(case):
        nonlocal count
        count += 1
        check(case)

    each()
    return count


def assignments():
    paths = st.one_of(st.sampled_from(PATHS), WORDS)
    values = st.one_of(SHAPES.map(str), WORDS)
    return st.builds(lambda path, value: f"{path}={value}", paths, values)


OPTIONS = st.one_of(
    st.tuples(
        st.sampled_from(
            ["--steps", "--seeds", "--seed", "--out", "--config", "--resume", "--set", "--episodes",
             "--step", "--png", "--samples", "--lam", "--rules", "--setting", "--sizes",
             "--experiments", "--time-limit"]
        ),
        st.one_of(NUMBERS.map(str), WORDS, st.sampled_from(["run", "nowhere", "10k", "1e6", "-1"])),
    ).map(list),
    assignments().map(lambda text: ["--set", text]),
    st.sampled_from([["--tensorboard"], ["--debug-nans"], ["--help"], ["--"], ["-"], ["--set"]]),
    WORDS.map(lambda word: [word]),
)  # fmt: skip
LINES = st.tuples(
    st.one_of(
        st.sampled_from(["train", "evaluate", "explain", "list", "bandit", "bsuite"]),
        st.just("train"),
        WORDS,
    ),
    st.lists(
        st.one_of(st.sampled_from([*agent_names(), "deep_sea/4", "cartpole"]), WORDS), max_size=2
    ),
    st.lists(OPTIONS, max_size=3),
).map(lambda parts: [parts[0], *parts[1], *(word for option in parts[2] for word in option)])


def test_command_lines(place, capsys, cases, tally):
    count = fuzz(cases, LINES, lambda line: check_answer(place, capsys, line))
    tally("odd command line", count, count)


def test_settings(place, capsys, cases, tally):
    lists = st.lists(assignments(), min_size=1, max_size=3)

    def check(words):
        check_answer(place, capsys, ["train", "c51-ids", "deep_sea/4", "--set", *words])

    count = fuzz(cases, lists, check)
    tally("odd settings", count, count)


def changed(config, changes):
    """`config` with some of its entries replaced, added or, for None, taken out."""
    config = json.loads(json.dumps(config))
    for path, value in changes:
        *tables, last = path.split(".")
        inner = config
        for name in tables:
            inner = inner.setdefault(name, {}) if isinstance(inner, dict) else {}
        if isinstance(inner, dict):
            if value is None:
                inner.pop(last, None)
            else:
                inner[last] = value
    return config


CONFIGS = st.one_of(
    st.dictionaries(WORDS, VALUES, max_size=4),
    st.builds(
        changed, st.sampled_from(list(VALID.values())),
        st.lists(st.tuples(st.sampled_from(PATHS), st.none() | VALUES), max_size=3),
    ),
)  # fmt: skip


def test_config_files(place, capsys, cases, tally):
    def check(config):
        file = place / "config.toml"
        try:
            file.write_text(tomli_w.dumps(config), encoding="utf-8")
        except (UnicodeEncodeError, ValueError, TypeError):
            file.write_text(repr(config), encoding="utf-8", errors="replace")
        check_answer(place, capsys, ["train", "--config", "config.toml"])

    count = fuzz(cases, CONFIGS, check)
    tally("odd config file", count, count)


def test_files_that_are_no_config(place, capsys, cases, tally):
    def check(content):
        (place / "config.toml").write_bytes(content)
        check_answer(place, capsys, ["train", "--config", "config.toml"])

    texts = st.text(string.printable, max_size=60).map(str.encode)
    count = fuzz(cases // 2, st.one_of(st.binary(max_size=60), texts), check)
    tally("odd config file", count, count)
