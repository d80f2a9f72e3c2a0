"""Long episodes: what is held of them is packed, and none of it is there as it was seen."""

import base64
import itertools
import json
import tracemalloc
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from idrl.config import resolve
from idrl.envs import HostEnv, View
from idrl.envs.host import Seen, Vector
from idrl.inspect.play import page, returns
from idrl.inspect.play.episode import Episode, recorded_episode
from idrl.inspect.play.gif import GifWriter
from idrl.inspect.play.packing import TooLarge, pack_bytes
from idrl.inspect.play.recorder import Thought
from idrl.inspect.play.returns import ReturnsRecorder
from idrl.inspect.play.rows import CHUNK, Rows
from idrl.inspect.play.views import view
from idrl.report.decisions import COLUMNS


def stacks(steps, side=84):
    """Four frames, the newest last, of a dot that goes to and fro."""
    frames = np.zeros((steps + 3, side, side), np.uint8)
    t = np.arange(steps + 3)
    frames[t, (3 * t) % side, t % side] = 255
    return (np.stack(frames[i : i + 4], -1) for i in range(steps))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, bool])
@pytest.mark.parametrize("shape", [(), (5,), (6, 4), (6, 4, 3)])
def test_rows_read_like_the_array_that_they_are(shape, dtype):
    array = np.random.default_rng(0).integers(0, 9, (2 * CHUNK + 7, *shape)).astype(dtype)
    rows = Rows(array)
    assert (len(rows), rows.shape, rows.ndim, rows.dtype) == (
        len(array), array.shape, array.ndim, array.dtype,
    )  # fmt: skip
    for key in (0, -1, CHUNK, slice(CHUNK - 2, CHUNK + 2), slice(3, None, 100), [1, 400]):
        assert np.array_equal(rows[key], array[key])
    if shape:
        assert np.array_equal(rows[:, 0], array[:, 0])
    assert np.array_equal(np.asarray(rows), array)
    assert np.array_equal(list(rows), array)
    assert (rows.min(), rows.max()) == (array.min(), array.max())
    with pytest.raises(IndexError):
        rows[len(array)]


def test_large_rows_are_in_small_chunks():
    rows = Rows(np.full((240, 240, 3), t, np.uint8) for t in range(100))
    assert max(chunk.nbytes for chunk in rows.chunks()) <= 2**23
    assert rows[:, 0, 0, 0].tolist() == list(range(100))


def test_what_is_held_of_frames_hardly_grows():
    """Of a stack each frame is there once, and packed: not 28 KB a step but less than 200 bytes."""
    short, long = (Rows(stacks(n * CHUNK)) for n in (2, 6))
    assert (long.held - short.held) / (4 * CHUNK) < 200
    frames = view("atari/pong", long).frames
    assert isinstance(frames, Rows)
    assert frames.held < long.held


def quantiles(steps, rng):
    for t in range(steps):
        yield np.sort(rng.normal(t / 50, 1, (3, 32)), -1).astype(np.float32)


def test_what_is_held_of_distributions_grows_with_what_is_shown():
    rng, weights = np.random.default_rng(0), np.full((3, 32), 1 / 32, np.float32)
    recorder = ReturnsRecorder()
    for values in quantiles(4 * CHUNK, rng):
        recorder.append(values, weights)
    held = sum(chunk.probs.held for chunk in recorder.chunks)
    assert held / (4 * CHUNK) < 400  # values and weights have 768 bytes


def test_histograms_of_all_chunks_have_the_same_bins():
    rng, weights = np.random.default_rng(0), np.full((3, 32), 1 / 32, np.float32)
    values = list(quantiles(3 * CHUNK + 5, rng))
    recorder = ReturnsRecorder()
    for one in values:
        recorder.append(one, weights)
    low, high, probs = recorder.finish()
    assert 24 <= probs.shape[-1] <= returns._BINS + 1
    assert low <= min(v.min() for v in values)
    assert high > max(v.max() for v in values)
    for t in (0, CHUNK + 3, -1):
        expected = [np.histogram(v, probs.shape[-1], (low, high))[0] / 32 for v in values[t]]
        assert probs[t] == pytest.approx(np.array(expected), abs=1e-6)


def test_fixed_values_have_a_bin_each():
    atoms = np.linspace(-10, 10, 21, dtype=np.float32)
    recorder = ReturnsRecorder()
    for t in range(CHUNK + 1):
        weights = np.zeros((2, 21), np.float32)
        weights[:, [5, 9 + (t == CHUNK), 20]] = 0.25, 0.7495, 0.0005
        recorder.append(np.stack([atoms, atoms]), weights)
    low, high, probs = recorder.finish()
    assert (low, high, probs.shape) == (-5.5, 0.5, (CHUNK + 1, 2, 6))
    assert probs[0, 0] == pytest.approx([0.25, 0, 0, 0, 0.7495, 0.0005], abs=2e-5)  # the rest last
    assert probs[-1, 1] == pytest.approx([0.25, 0, 0, 0, 0, 0.75], abs=2e-5)


def test_one_value_alone_has_a_bin_too():
    recorder = ReturnsRecorder()
    for _ in range(3):
        recorder.append(np.full((2, 4), 1000.0, np.float32), np.full((2, 4), 0.25, np.float32))
    low, high, probs = recorder.finish()
    assert low <= 1000 <= high
    assert np.asarray(probs).sum(-1) == pytest.approx(1)
    assert ReturnsRecorder().finish() is None


def noisy_episode(steps, kind="grey"):
    rng = np.random.default_rng(0)
    numbers = rng.uniform(0.1, 1, (6, steps, 3)).astype(np.float32)
    whole = np.zeros(steps, int)
    frames = Rows(rng.integers(0, 256, (16, 16), dtype=np.uint8) for _ in range(steps))
    return Episode(
        "made up", 0, "ids", "explore", 0.1, False, whole, whole, whole, whole.astype(np.float32),
        *numbers, returns=None, view=View(kind, frames, "Noise"),
    )  # fmt: skip


def test_a_page_has_fewer_pictures_before_it_is_too_large(tmp_path, monkeypatch):
    episode, target = noisy_episode(1200), tmp_path / "play.html"
    empty = page.write_page(noisy_episode(1), target)
    monkeypatch.setattr(page, "LIMIT", empty + 200_000)  # all pictures are 400 KB
    assert page.write_page(episode, target) < page.LIMIT
    text = target.read_text()
    assert "one step in 4 has a new picture" in text
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    frames = data["view"]["frames"]
    assert (data["steps"], frames["every"], frames["chunk"]) == (1200, 4, CHUNK)
    change = zlib.decompress(base64.b64decode(frames["chunks"][1]))
    shown = np.bitwise_xor.accumulate(np.frombuffer(change, np.uint8).reshape(-1, 16, 16), axis=0)
    assert np.array_equal(shown, episode.view.frames[4 * CHUNK :: 4])


def test_packing_ends_where_it_is_too_much():
    asked = []

    def make(chunk):
        asked.append(len(chunk))
        return chunk

    noise = np.random.default_rng(0).integers(0, 256, (100 * CHUNK, 50), dtype=np.uint8)
    with pytest.raises(TooLarge):
        pack_bytes(noise, make, most=30_000)
    assert len(asked) < 5


def test_a_gif_is_written_frame_by_frame(tmp_path):
    fig, target = Figure((2, 1)), tmp_path / "e.gif"
    image = fig.figimage(np.zeros((100, 200, 3)))
    writer, sizes = GifWriter(fps=5), []
    with writer.saving(fig, target, dpi=100):
        for t in (0, 1, 1, 2):
            picture = np.zeros((100, 200, 3))
            picture[20:40, 30 * t : 30 * t + 9] = 1, 0.5, 0
            image.set_data(picture)
            writer.grab_frame()
            writer._file.flush()
            sizes.append(target.stat().st_size)
    assert all(a < b for a, b in itertools.pairwise(sizes))
    gif = Image.open(target)
    assert (gif.n_frames, gif.info["duration"], gif.info["loop"]) == (4, 200, 0)
    for number, t in enumerate((0, 1, 1, 2)):
        gif.seek(number)
        bright = np.asarray(gif.convert("L")) > 100
        assert bright.sum() == 20 * 9
        assert bright[20:40, 30 * t : 30 * t + 9].all()


class Endless(HostEnv):
    """A dot that goes to and fro, seen as Atari's games are."""

    name = "endless"
    num_actions = 3
    obs_shape = (84, 84, 4)
    obs_dtype = np.uint8
    masked = False
    stack = 4

    def make(self, count, timeout_s=0.0):
        return Dot()


class Dot(Vector):
    t = 0

    def send(self, action, seed):
        self.asked = seed

    def recv(self):
        self.t += 1
        frame = np.zeros((1, 84, 84), np.uint8)
        frame[0, 3 * self.t % 84, self.t % 84] = 255
        no = np.zeros(1, bool)
        return Seen(frame, np.ones(1, np.float32), no, no, self.asked >= 0)


class Mind:
    """Thinks without a network: what it says is as large as what an agent says."""

    acting = "explore"

    def begin(self, policy):
        self.rng = np.random.default_rng(0)

    def think(self, obs, allowed):
        numbers = self.rng.uniform(0.1, 1, (len(COLUMNS), 3)).astype(np.float32)
        weights = self.rng.dirichlet(np.ones(51), 3).astype(np.float32)
        atoms = np.tile(np.linspace(-1, 1, 51, dtype=np.float32), (3, 1))
        decision = SimpleNamespace(
            action=1, candidates=None, **dict(zip(COLUMNS, numbers, strict=True))
        )
        return Thought(1, 1, decision, 1, (atoms, weights))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_episode(tmp_path):
    """Whatever its length: what is seen of a step, 28 KB, is not there at the end."""
    config = resolve("c51-ids", "endless", obs_shape=Endless.obs_shape)
    policy = SimpleNamespace(config=config, seed=0)

    def peak(steps):
        tracemalloc.start()
        episode = recorded_episode(Mind(), policy, Endless(), "endless", steps)
        episode.save_page(tmp_path / "play.html")
        assert (len(episode.action), episode.ended, episode.view.kind) == (steps, False, "grey")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)  # Plotly's script is read
    short, long = peak(CHUNK), peak(4 * CHUNK)
    assert (long - short) / (3 * CHUNK) < 2_000  # bytes a step
