"""Both pages in a real browser, opened from the disk: what a reader does with them works."""

import numpy as np
import pytest
from browser import Browser
from run_folders import made_up_run

from idrl.envs.drawings import cart_and_pole
from idrl.inspect.play.episode import Episode
from idrl.inspect.play.page import Fidelity, write_page
from idrl.inspect.play.returns import Returns
from idrl.inspect.play.sigma import SigmaMap
from idrl.inspect.play.views import View
from idrl.report.writing import make_report

STEPS, ACTIONS = 300, 3  # more than one chunk
SPLIT = (7, 250)  # where the rule and greedy disagree


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("report")
    for i, agent in enumerate(("c51-ids", "dqn", "dqn-ids")):
        for env in ("minatar/breakout", "minatar/asterix"):
            made_up_run(root / "runs" / f"{agent}-{env[8:]}", agent, env, level=3.0 - i,
                        distributions=agent == "c51-ids")  # fmt: skip
    make_report([root / "runs"], root / "report")
    return root / "report" / "index.html"


def made_up_episode(kind="cells"):
    rng = np.random.default_rng(0)
    mu = rng.normal(0, 1, (STEPS, ACTIONS)).astype(np.float32)
    sigma, rho2, gain = (rng.uniform(0.1, 1, mu.shape).astype(np.float32) for _ in range(3))
    regret = mu.max(1, keepdims=True) - mu + 0.1
    greedy = mu.argmax(1)
    explored = greedy.copy()
    explored[list(SPLIT)] = (greedy[list(SPLIT)] + 1) % ACTIONS
    frames = rng.integers(0, 5, (STEPS, 10, 10), dtype=np.uint8)
    if kind == "numbers":
        frames = mu
    return Episode(
        title="made up", seed=0, rule="ids", acting="explore", lam=0.1, ended=True,
        action=explored, greedy=greedy, explored=explored,
        reward=(np.arange(STEPS) % 50 == 49).astype(np.float32), mu=mu, sigma=sigma, rho2=rho2,
        regret=regret, info_gain=gain, ratio=regret**2 / gain,
        returns=Returns(-1.0, 1.0, rng.dirichlet(np.ones(20), mu.shape).astype(np.float32)),
        view=View(kind, frames, "A board"),
    )  # fmt: skip


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    target = tmp_path_factory.mktemp("play") / "play.html"
    maps = np.where(np.tri(4, dtype=bool), np.linspace(1, 0.1, 3)[:, None, None], np.nan)
    sigma = SigmaMap(np.array([0, 100, 200]), maps)
    write_page(made_up_episode()._replace(sigma_map=sigma), target)
    return target


def lines_of(browser, chart):
    """The lines of a chart that can be hovered, by name."""
    names = f"document.getElementById('{chart}').data.filter(t => t.hoverinfo !== 'skip')"
    return browser.run(names + ".map(t => t.name)")


def test_agents_are_switched_off_in_all_charts(browser, report):
    browser.open(report)
    browser.until("document.querySelectorAll('.js-plotly-plot').length >= 4")
    assert lines_of(browser, "s0c0") == ["c51-ids, 3 seeds", "dqn, 3 seeds", "dqn-ids, 3 seeds"]
    browser.click(".agent[data-label='dqn']")
    browser.until("document.querySelector('[data-label=dqn]').ariaPressed === 'false'")
    for chart in ("s0c0", "s0c1"):
        assert lines_of(browser, chart) == ["c51-ids, 3 seeds", "dqn-ids, 3 seeds"]
    browser.click(".agent[data-label='dqn']")
    assert len(lines_of(browser, "s0c0")) == 3
    assert browser.errors == []


def test_curves_are_smoothed(browser, report):
    browser.open(report)
    first = "document.getElementById('s0c0').data.find(t => t.hoverinfo !== 'skip').y[0]"
    before = browser.until(f"document.getElementById('s0c0').data && {first}")
    browser.run("document.getElementById('smoothing').focus()")
    browser.key("ArrowRight")
    browser.until("document.getElementById('width').textContent === '3 points'")
    assert browser.run(first) > before  # rising curves: the neighbour is higher
    assert browser.errors == []


def test_tables_sort_both_ways(browser, report):
    browser.open(report)
    cells = "[...document.querySelectorAll('#minatar-scores tbody tr')].map(r => r.cells[3])"
    values = f"{cells}.map(c => Number(c.dataset.value))"
    head = "#minatar-scores th:nth-child(4) button"
    for way, direction in (("ascending", 1), ("descending", -1)):
        browser.click(head)
        found = browser.run(values)
        assert found == sorted(found, key=lambda value: direction * value)
        assert browser.run(f"document.querySelector('{head}').parentElement.ariaSort") == way
    links = browser.run("[...document.querySelectorAll('details a')].map(a => a.href)")
    assert len(links) == 6
    assert browser.errors == []


@pytest.mark.parametrize("width", [1200, 380])
@pytest.mark.parametrize("dark", [False, True])
def test_pages_fit_and_follow_the_colour_scheme(browser, report, played, width, dark):
    for page in (report, played):
        browser.open(page, width=width, dark=dark)
        browser.until("document.querySelector('.js-plotly-plot .main-svg')")
        ground = browser.run("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 200) == dark
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        assert browser.errors == []


def test_the_slider_and_the_keys_move_through_the_episode(browser, played):
    browser.open(played)
    now = "document.getElementById('now').textContent"
    browser.until(f"{now}.startsWith('Step 0 ')")
    browser.run("document.getElementById('time').focus()")
    browser.key("ArrowRight")  # by the slider itself
    browser.until(f"{now}.startsWith('Step 1 ')")
    browser.run("document.activeElement.blur()")
    for key, step in (("ArrowRight", 2), ("End", 299), ("ArrowLeft", 298), ("p", 250), ("p", 7),
                      ("n", 250), ("Home", 0), ("n", 7)):  # fmt: skip
        browser.key(key)
        browser.until(f"{now}.startsWith('Step {step} ')")
    assert "would take" in browser.run(now)
    assert browser.errors == []


def test_a_step_shows_what_was_believed(browser, played):
    episode = made_up_episode()
    browser.open(played)
    browser.run("(async () => { await show(260); })()")
    bars = browser.run("document.getElementById('bars').data.map(t => t.y)")
    for found, name in zip(bars, ("mu", "rho2", "regret", "info_gain", "ratio"), strict=True):
        assert found == pytest.approx(getattr(episode, name)[260].tolist(), rel=1e-4)
    error = browser.run("document.getElementById('bars').data[0].error_y.array")
    assert error == pytest.approx((0.1 * episode.sigma[260]).tolist(), rel=1e-4)
    shown = browser.run("document.getElementById('returns').data.map(t => t.y)")
    assert np.array(shown) == pytest.approx(episode.returns.probs[260], abs=4e-3)
    taken = browser.run("document.querySelector('tr.taken').cells[0].textContent")
    assert int(taken) == episode.action[260]
    assert browser.errors == []


def test_a_page_without_room_shows_every_fourth_picture(browser, tmp_path, monkeypatch):
    episode, target = made_up_episode(), tmp_path / "play.html"
    monkeypatch.setattr("idrl.inspect.play.page._LEVELS", (Fidelity(16, 64, 4),))
    write_page(episode, target)
    browser.open(target)
    for step in (0, 3, 4, 299):
        shown = browser.run(f"(async () => Array.from(await frames.at({step})))()")
        assert shown == episode.view.frames[step - step % 4].ravel().tolist()
    browser.run("(async () => { await show(299); })()")
    assert "one step in 4 has a new picture" in browser.run(
        "document.querySelector('p.note').textContent"
    )
    assert browser.errors == []


@pytest.mark.parametrize("dims", [1, 6])
def test_continuous_actions_go_by_their_numbers(browser, dims, tmp_path):
    places = np.random.default_rng(0).uniform(0.1, 1, (STEPS, ACTIONS, dims)).astype(np.float32)
    episode = made_up_episode("numbers")
    returns = episode.returns._replace(probs=episode.returns.probs[:, :2])
    write_page(episode._replace(candidates=places, returns=returns), tmp_path / "play.html")
    browser.open(tmp_path / "play.html")
    browser.run("(async () => { await show(250); })()")
    taken = browser.run("document.querySelector('tr.taken').cells[0].textContent")
    wanted = places[250, episode.action[250]]
    assert [float(x) for x in taken.split()] == pytest.approx(wanted.tolist(), abs=6e-4)
    assert "the actor +" in browser.run("document.getElementById('now').textContent")
    x = browser.run("document.getElementById('bars').data[0].x")
    if dims == 1:
        assert x == pytest.approx(places[250, :, 0].tolist(), abs=1e-4)
    else:
        assert x == [str(a + 1) for a in range(ACTIONS)]
    assert browser.run("document.getElementById('returns').data.length") == 2
    assert browser.run("!document.getElementById('actor-key').hidden")
    assert browser.errors == []


def test_play_and_pause_and_the_map(browser, played):
    browser.open(played)
    browser.until("document.getElementById('now').textContent")
    browser.run("document.getElementById('speed').value = '30'")
    browser.key(" ")
    browser.until("now > 5")
    assert browser.run("document.getElementById('play').ariaLabel") == "Pause"
    browser.key(" ")
    assert browser.run("timer") is None
    browser.click("#after")
    browser.until("now === 250 || now === 7")
    z = "document.getElementById('sigma').data[0].z[1][1]"
    assert browser.until(f"document.getElementById('sigma').data && {z}") == 1
    browser.run("document.getElementById('snapshot').focus()")
    browser.key("End")
    browser.until(f"{z} === 0.1")
    assert browser.run("document.getElementById('trained').textContent") == "200"
    assert browser.errors == []


def test_numbers_are_shown_as_bars(browser, tmp_path):
    target = tmp_path / "numbers.html"
    write_page(made_up_episode("numbers"), target)
    browser.open(target)
    browser.until("document.querySelector('#numbers .main-svg')")
    assert browser.run("document.getElementById('frame').offsetParent === null")
    assert browser.run("document.getElementById('sigma-card').hidden")
    assert browser.errors == []


def test_strokes_are_drawn_and_values_stand_alone(browser, tmp_path):
    """An agent without an ensemble on a task that is drawn; it never leaves greedy."""
    target, still = tmp_path / "strokes.html", np.zeros((STEPS, 1), np.float32)
    episode = made_up_episode()
    view = cart_and_pole(still[:, 0], still[:, 0])
    write_page(episode._replace(view=view, shown=("mu",), explored=episode.greedy), target)
    browser.open(target)
    browser.until("document.querySelectorAll('#bars .main-svg').length")
    heads = browser.run("[...document.querySelectorAll('#heads th')].map(e => e.textContent)")
    assert heads == ["action", "μ", ""]
    assert browser.run("document.getElementById('bars').data.length") == 1
    # the pole in the middle, and nothing left of it
    pixel = """[...document.getElementById('frame').getContext('2d').getImageData(
        document.getElementById('frame').width * %s, document.getElementById('frame').height * 0.4,
        1, 1).data]"""
    assert browser.run(pixel % 0.5) == [0xD5, 0x5E, 0x00, 255]
    assert browser.run(pixel % 0.3)[3] == 0
    look = "getComputedStyle(document.getElementById('%s')).opacity"
    assert float(browser.run(look % "after")) < 0.7 < float(browser.run(look % "next"))
    assert browser.errors == []


def test_the_browser_hears_of_errors(browser, tmp_path):
    """Or the tests above would prove nothing."""
    page = tmp_path / "bad.html"
    page.write_text("<script>throw new Error('bad')</script><img src='http://127.0.0.1:9/x.png'>")
    browser.open(page)
    browser.until("document.readyState === 'complete'")
    assert len(browser.errors) >= 2
