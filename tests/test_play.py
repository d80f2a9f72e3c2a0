"""`idrl play`: the episode that is shown, how it is packed, its page and its video."""

import base64
import json
import zlib

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import idrl
from idrl.agents import declared
from idrl.cli.app import main
from idrl.config import resolve
from idrl.envs import make_env
from idrl.envs.families.deep_sea import DIVER, TRAIL, TREASURE
from idrl.inspect.play import episode as episode_module
from idrl.inspect.play import packing
from idrl.inspect.play.episode import play
from idrl.inspect.play.page import LIMIT, coarser, write_page
from idrl.inspect.play.rows import Rows
from idrl.inspect.play.sigma import read_sigma
from idrl.inspect.play.views import drawn, small, view
from idrl.inspect.walking import walk
from idrl.training.seeding import seed_key
from idrl.training.survey import Survey

TINY = {
    "trunk": {"hidden": 16},
    "heads": {"q": {"hidden": 16, "k": 3}, "z": {"hidden": 16}},
    "training": {"log_every_steps": 100},
    "evaluation": {"every_steps": 100, "steps": 40},
    "learning": {"learning_starts_steps": 20},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("play") / "run"
    return idrl.train("c51-ids", "deep_sea/4", steps=300, seeds=2, out=out, settings=TINY)


@pytest.fixture(scope="module")
def episode(run):
    return play(run.path)


def test_bytes_come_back_out_of_their_chunks():
    frames = np.random.default_rng(0).integers(0, 256, (10, 3, 2), dtype=np.uint8)
    packed = packing.pack_bytes(frames, chunk=4)
    assert len(packed["chunks"]) == 3
    back = []
    for text in packed["chunks"]:
        change = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(-1, 3, 2)
        back.append(np.bitwise_xor.accumulate(change, axis=0))
    assert np.array_equal(np.concatenate(back), frames)


@pytest.mark.parametrize(("bits", "error"), [(16, 2e-5), (8, 4e-3)])
def test_floats_keep_their_digits(bits, error):
    values = np.random.default_rng(0).normal(0, 100, (5, 7)).astype(np.float32)
    values[0, :3] = np.inf, -np.inf, 0
    packed = packing.pack_floats(values, bits)
    change = np.frombuffer(zlib.decompress(base64.b64decode(packed["chunks"][0])), np.uint8)
    planes = np.bitwise_xor.accumulate(change.reshape(5, 4, 7), axis=0)
    back = np.ascontiguousarray(planes.swapaxes(1, 2)).view(">f4")[..., 0]
    assert np.array_equal(np.isfinite(back), np.isfinite(values))
    finite = np.isfinite(values)
    assert back[finite] == pytest.approx(values[finite], rel=error)


def test_histograms_keep_their_mass():
    probs = np.random.default_rng(0).dirichlet(np.ones(51), (2, 3))
    assert coarser(probs, 12).shape == (2, 3, 11)
    assert coarser(probs, 12).sum(-1) == pytest.approx(1)
    assert np.array_equal(coarser(probs, 64), probs)


@pytest.mark.slow
def test_an_episode_is_what_the_agent_thought(run, episode):
    assert len(episode.action) == 4
    assert episode.ended
    assert np.array_equal(episode.action, episode.explored)
    assert np.array_equal(episode.greedy, episode.mu.argmax(1))
    assert episode.ratio == pytest.approx(episode.regret**2 / episode.info_gain, rel=1e-5)
    assert np.array_equal(episode.explored, episode.ratio.argmin(1))
    assert np.asarray(episode.returns.probs).sum(-1) == pytest.approx(1, abs=4e-4)
    # The first decision is the one that `explain` shows.
    env = make_env("deep_sea/4")
    policy = idrl.load(run.path)
    first = np.zeros(env.obs_shape, np.uint8)
    first[0, 0] = 1
    assert policy.explain(first).mu == pytest.approx(episode.mu[0], rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    ("agent", "rule"),
    [("c51-ids", "ids"), ("dqn", "epsilon_greedy"), ("noisynet-dqn", "noisy greedy")],
)
def test_an_exploring_rule_is_not_called_as_the_greedy_one(agent, rule):
    assert episode_module._named(declared(agent)) == rule


def test_ids_in_noisy_weights_is_called_so(episode, tmp_path):
    spec = resolve("dqn-ids", "deep_sea/4", changes=[{"heads": {"q": {"noisy": 0.5}}}]).spec
    named = episode_module._named(spec)
    assert named == "noisy ids"
    write_page(episode._replace(rule=named), tmp_path / "page.html")
    assert "noisy IDS takes the smallest" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_acting_by_the_evaluation_rule_is_greedy(run):
    episode = play(run.path, acting="evaluate")
    assert np.array_equal(episode.action, episode.greedy)


@pytest.mark.parametrize("name", ["cartpole", "gym/CartPole-v1"])
def test_another_number_is_another_episode(name):
    env = make_env(name)
    starts = [next(walk(env, seed_key(5), number=n)).obs.tolist() for n in (0, 1, 2, 1)]
    assert starts[1] == starts[3]
    assert len({tuple(start) for start in starts}) == 3


def test_another_episode_is_of_the_same_task(run, episode):
    """DeepSea draws what its actions mean once for a seed; its episodes have no chance."""
    other = play(run.path, episode=2)
    assert other.action.tolist() == episode.action.tolist()
    assert other.title == f"{episode.title}, episode 2"


@pytest.mark.slow
def test_the_sea_shows_agent_way_and_treasure(episode):
    cells = episode.view.frames
    assert episode.view.kind == "cells"
    assert cells[0, 0, 0] == DIVER
    assert cells[0, -1, -1] == TREASURE
    assert cells[1, 0, 0] == TRAIL
    assert [(frame == DIVER).sum() for frame in cells] == [1] * 4


def test_every_observation_has_a_view():
    boards = np.zeros((3, 10, 10, 4), np.uint8)
    boards[:, 2, 3, 1] = 1
    board = view("minatar/breakout", Rows(boards))
    assert (board.kind, board.frames[0, 2, 3]) == ("cells", 2)
    stack = np.random.default_rng(0).integers(0, 256, (3, 84, 84, 4), dtype=np.uint8)
    newest = view("atari/pong", Rows(stack))
    assert newest.kind == "grey"
    assert np.array_equal(newest.frames, stack[..., -1])
    assert view("mine", Rows(np.zeros((3, 4), np.float32))).kind == "numbers"
    catch = view("bsuite/catch", Rows(np.eye(10, 5, dtype=np.float32)[None]))
    assert (catch.kind, catch.frames.max()) == ("grey", 255)
    large = [small(np.zeros((400, 600, 3), np.uint8))] * 2
    assert drawn("gym/X", Rows(large)).frames.shape == (2, 134, 200, 3)


def strokes(env, *numbers):
    """The strokes of one observation, by the colour of their pens."""
    found = view(env, Rows(np.array([numbers], np.float32)))
    assert found.kind == "strokes"
    frames = np.asarray(found.frames)
    assert np.isfinite(frames).all()
    assert ((frames >= 0) & (frames <= [1.5, 1, 1.5, 1])).all()
    return {pen.colour: stroke for pen, stroke in zip(found.pens, found.frames[0], strict=True)}


@pytest.mark.parametrize("env", ["cartpole", "gym/CartPole-v1", "gymnax/CartPole-v1"])
def test_a_cart_is_drawn_with_its_pole(env):
    upright, leaning = strokes(env, 0, 0, 0, 0), strokes(env, 1.2, 0, 0.2, 0)
    x, _, tip, _ = upright["chosen"]
    assert x == tip == 0.75
    x, low, tip, high = leaning["chosen"]
    assert 0.75 < x < tip  # right of the middle, and leaning to the right
    assert low < high


def test_small_machines_are_drawn_as_they_stand():
    for env in ("mountain_car", "mountain_car_continuous", "gym/MountainCar-v0"):
        bottom, top = (strokes(env, x, 0)["ink"] for x in (-np.pi / 6, 0.5))
        assert bottom[0] < top[0]
        assert bottom[1] < top[1]
    hanging, up = strokes("acrobot", 1, 0, 1, 0, 0, 0), strokes("acrobot", -1, 0, 1, 0, 0, 0)
    assert hanging["chosen"][3] < 0.5 < up["line"][1] < up["chosen"][3]  # its end above the line
    assert strokes("pendulum", 1, 0, 0)["accent"] == pytest.approx([0.75, 0.5, 0.75, 0.88])
    assert strokes("pendulum", 0, 1, 0)["accent"][2] < 0.75  # to the left
    reached = strokes("reacher", 1, 1, 0, 0, 0, 0, 2, 0)
    assert reached["soft"][:2] == pytest.approx(reached["chosen"][2:])
    hanging = strokes("bsuite/cartpole_swingup", 0, 0, 0, -1, 0, 0, 1, 1)["chosen"]
    assert hanging[3] < hanging[1]


@pytest.mark.slow
def test_sigma_was_mapped_while_it_trained(run):
    found = read_sigma(run.path, 1)
    assert found.steps.tolist() == [20, 100, 200, 300]  # before the first update, then evaluations
    assert found.maps.shape == (4, 4, 4)
    assert np.isnan(found.maps[0, 0, 1])  # no way leads there
    assert np.isfinite(found.maps[:, *np.tril_indices(4)]).all()
    assert read_sigma(run.path, 7) is None


@pytest.mark.slow
def test_a_long_run_is_mapped_ever_more_rarely(run):
    agent = idrl.load(run.path).agent
    survey = Survey(agent, make_env("deep_sea/4"))
    due = [number for number in range(257) if survey.due(number)]
    assert due[:33] == list(range(33))
    assert due[33:49] == list(range(34, 66, 2))
    assert len(due) == 33 + 3 * 16
    assert not Survey(agent, make_env("cartpole")).due(0)
    assert not Survey(agent, make_env("deep_sea/60")).due(0)  # too many places


def test_a_damaged_map_is_named(tmp_path):
    (tmp_path / "sigma_map.csv").write_text("seed,steps,sigma\n0,100,0.1 0.2 0.3\n0,200,0.1")
    with pytest.raises(idrl.IdrlError, match="sigma_map.csv' is damaged"):
        read_sigma(tmp_path, 0)


def page_data(path):
    text = path.read_text()
    return json.loads(text.split('id="data">')[1].split("</script>")[0].replace("<\\/", "</"))


@pytest.mark.slow
def test_play_writes_a_page_and_a_video(run, tmp_path, capsys):
    page, video = tmp_path / "e.html", tmp_path / "e.gif"
    arguments = ["play", str(run.path), "--page", str(page), "--video", str(video)]
    assert main([*arguments, "--max-steps", "2"]) == 0
    out = capsys.readouterr().out
    assert "in 2 steps" in out
    assert page.stat().st_size < LIMIT
    data = page_data(page)
    assert (data["steps"], data["actions"], data["rule"]) == (2, 2, "IDS")
    assert len(data["sigma"]["maps"]) == 4
    assert "://" not in page.read_text().split("<script>")[0]
    from PIL import Image

    assert Image.open(video).n_frames == 2


@pytest.mark.slow
def test_a_long_episode_is_packed_more_coarsely(episode, tmp_path, monkeypatch):
    fine = write_page(episode, tmp_path / "fine.html")
    monkeypatch.setattr("idrl.inspect.play.page.LIMIT", fine)
    assert write_page(episode, tmp_path / "coarse.html") < fine


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--video", "x.avi"], "must end in .mp4 or .gif"),
        (["--page", "nowhere/x.html"], "there is no folder 'nowhere'"),
        (["--seed", "9"], "the run has seeds 0 to 1, not 9"),
        (["--max-steps", "0"], "is not a whole number, 1 or more"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, sentence, run, capsys):
    assert main(["play", str(run.path), *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_of_one_seed_names_it(tmp_path):
    settings = {name: TINY[name] for name in ("trunk", "evaluation", "learning")}
    run = idrl.train(
        "dqn", "deep_sea/4", steps=100, seed=5, out=tmp_path / "run", settings=settings
    )
    with pytest.raises(idrl.IdrlError, match="the run has seed 5, not 0"):
        idrl.load(run, 0)


@pytest.mark.slow
def test_an_mp4_without_ffmpeg_says_what_to_do(run, capsys, monkeypatch):
    monkeypatch.setattr("idrl.inspect.play.video._ffmpeg", lambda: None)
    assert main(["play", str(run.path), "--video", "x.mp4"]) == 2
    assert "pip install 'idrl[video]'" in capsys.readouterr().err


class Drawn(gymnasium.Env):
    """A short corridor that can draw itself."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = spaces.Box(0, 3, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.where = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.where += 1
        return np.array([self.where], np.float32), 1.0, self.where == 3, False, {}

    def render(self):
        return np.full((8, 12, 3), 40 * self.where, np.uint8)


@pytest.mark.slow
def test_an_agent_without_an_ensemble_shows_its_values_alone(tmp_path, capsys):
    settings = {name: TINY[name] for name in ("trunk", "training", "evaluation", "learning")}
    run = idrl.train("dqn", "cartpole", steps=100, out=tmp_path / "run", settings=settings)
    episode = play(run.path, page=tmp_path / "e.html", video=tmp_path / "e.gif", max_steps=2)
    data = page_data(tmp_path / "e.html")
    assert (data["names"], data["shown"], data["view"]["kind"]) == (["mu"], ["mu"], "strokes")
    assert episode.sigma.shape == episode.mu.shape  # in Python it is all there
    text = (tmp_path / "e.html").read_text()
    assert "λ =" not in text
    assert "information gain:" not in text
    assert len(run.distributions) == 0
    capsys.readouterr()
    assert main(["explain", str(run.path)]) == 0
    out = capsys.readouterr().out
    assert "μ" in out
    assert not any(symbol in out for symbol in ("σ", "ρ²", "ratio"))


@pytest.mark.slow
def test_gymnasium_environments_are_shown_as_they_draw_themselves(tmp_path):
    gymnasium.register("Drawn-v0", Drawn)
    settings = {k: v for k, v in TINY.items() if k != "heads"} | {"heads": {"q": {"hidden": 8}}}
    run = idrl.train(
        "dqn", "gym/Drawn-v0", steps=60, out=tmp_path / "run", settings=settings
    )  # fmt: skip
    episode = play(run.path)
    assert episode.view.kind == "colour"
    assert episode.view.frames[:, 0, 0, 0].tolist() == [0, 40, 80]
    assert episode.returns is None
    assert read_sigma(run.path, 0) is None
