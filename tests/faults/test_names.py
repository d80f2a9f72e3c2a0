"""Two hundred hostile names through reports and pages, opened in a browser."""

import numpy as np
import pytest
from browser import Browser
from names import NAMES
from run_folders import made_up_run

from idrl.cli.app import main
from idrl.inspect.play.episode import Episode, Returns
from idrl.inspect.play.page import write_page
from idrl.inspect.play.views import View
from idrl.system import words

GROUPS = 5


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


def writable(name: str) -> str:
    return name.replace("\x00", "\\0")  # TOML has no zero byte, and no path has


def check_page(browser, page, charts: str) -> int:
    """Opened as high as it is, so that all of it is drawn; no script of a name's ran."""
    browser.open(page, height=40_000)
    drawn = f"document.querySelectorAll('{charts} .main-svg').length > 0 && "
    drawn += f"[...document.querySelectorAll('{charts}')].every(p => p.querySelector('.main-svg'))"
    browser.until(drawn, 120)
    assert browser.run("window.hit === undefined && document.scripts.length === 3")
    assert (
        browser.run("document.querySelectorAll('iframe, base, img, details[ontoggle]').length") == 0
    )
    assert browser.errors == []
    return browser.run(f"document.querySelectorAll('{charts}').length")


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_report_of_hostile_names(browser, group, tmp_path, capsys, tally):
    """As agents, as tasks, and as families of tasks."""
    mine = [writable(name) for name in NAMES[group::GROUPS]]
    few = {"seeds": 1, "steps": 300}
    for number, name in enumerate(mine):
        agent, env = [(name, "deep_sea/10"), ("dqn", f"deep_sea/{name}")][number % 2]
        if number >= len(mine) - 2:
            agent, env = "dqn", name
        made_up_run(tmp_path / "runs" / str(number), agent, env, **few)
    assert main(["report", str(tmp_path / "runs"), "-o", str(tmp_path / "report")]) == 0
    told = capsys.readouterr().out
    assert all(c.isprintable() or c == "\n" for c in told)
    assert max(map(len, (tmp_path / "report" / "report.md").read_text().splitlines())) < 20_000
    charts = check_page(browser, tmp_path / "report" / "index.html", ".plot")
    assert charts >= len(mine) // 2
    tasks = browser.run("[...document.querySelectorAll('.chart h3')].map(e => e.textContent)")
    shown = [words.name(f"deep_sea/{name}") for name in mine[1:-2:2]]
    assert set(shown) - {task.strip() for task in tasks} <= {name for name in shown if " " in name}
    assert not (tmp_path / "escaped").exists()
    tally("hostile name in a report", len(mine), len(mine))


def an_episode(title: str) -> Episode:
    rng = np.random.default_rng(0)
    one = rng.uniform(0.1, 1, (3, 2)).astype(np.float32)
    actions = np.zeros(3, np.int64)
    return Episode(
        title=title, seed=0, rule=title, acting="explore", lam=0.1, ended=True, action=actions,
        greedy=actions, explored=actions, reward=np.ones(3, np.float32), mu=one, sigma=one,
        rho2=one, regret=one, info_gain=one, ratio=one,
        returns=Returns(-1.0, 1.0, rng.dirichlet(np.ones(5), (3, 2)).astype(np.float32)),
        view=View("cells", np.zeros((3, 4, 4), np.uint8), title),
    )  # fmt: skip


def test_played_pages_of_hostile_names(browser, tmp_path, tally):
    """As a title of a run they are shortened; here they are not, all but their length."""
    for group in range(10):
        mine = [name[:300] for name in NAMES[group::10]]
        page = tmp_path / f"{group}.html"
        write_page(an_episode(" ".join(mine).replace("\ud800", "")), page)
        assert check_page(browser, page, "#bars, #returns") == 2
        shown = browser.run("document.querySelector('h1').textContent")
        assert len(shown) > 0.8 * sum(map(len, mine))
    tally("hostile name in a played page", len(NAMES), len(NAMES))
