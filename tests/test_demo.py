"""`idrl demo`: the default run, and the page on what happened."""

import json

import numpy as np
import pytest
from browser import Browser

import idrl
from idrl.cli import demo
from idrl.cli.app import main
from idrl.inspect.demo.moments import Moment, sentence
from idrl.inspect.play.episode import Episode
from idrl.runs import api

SMALL = {
    "trunk": {"hidden": [8]},
    "heads": {"q": {"hidden": [8], "k": 3}, "z": {"hidden": [8]}},
    "training": {"steps": 400, "log_every_steps": 100, "distributions_every_steps": 0},
    "evaluation": {"every_steps": 100, "steps": 40},
    "learning": {"learning_starts_steps": 20, "replay_capacity": 500},
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The command, with a run that is over in seconds and its agent and task as they are."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    asked = {}

    def train(out, settings, display):
        asked.update(settings)
        merged = SMALL | {"training": SMALL["training"] | settings["training"]}
        return trained(out=out, settings=merged, seeds=2, display=display)

    trained = api.train
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "train", train)
        assert main(["demo", "--out", str(folder)]) == 0
    return folder, asked


@pytest.mark.slow
def test_the_page_tells_what_happened(told):
    folder, asked = told
    assert asked == {"training": {"keep_weights": demo.KEPT}}
    run = idrl.open_run(folder)
    assert (run.config.agent, run.config.env) == ("c51-ids", "deep_sea/10")  # as the page says
    assert run.kept_weights == [100, 200, 400]
    text = (folder / "demo.html").read_text()
    head = text.split("<script")[0]
    assert head.count('class="card decision"') == 3
    assert "of 2 seeds solved it" in head
    assert f"idrl play {folder} --at 100" in head
    assert "@" not in head.split("<body>")[1]
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["evaluated"]["steps"] == [100, 200, 300, 400]
    assert np.shape(data["sigma"]["maps"])[1:] == (10, 10)
    assert data["sigma"]["steps"][0] < data["sigma"]["steps"][-1] == 400


@pytest.mark.slow
def test_a_folder_that_is_there_is_refused(told, capsys):
    assert main(["demo", "--out", str(told[0])]) == 2
    assert "exists already" in capsys.readouterr().err


def moment(mu, sigma, rho2, gain, *, chosen):
    """One decision of two actions, with λ = 1."""
    mu, sigma, rho2, gain = (np.array([x], np.float32) for x in (mu, sigma, rho2, gain))
    regret = (mu + sigma).max() - (mu - sigma)
    episode = Episode(
        "", 0, "ids", "explore", 1.0, True, np.array([chosen]), mu.argmax(1), np.array([chosen]),
        np.zeros(1), mu, sigma, rho2, regret, gain, regret**2 / gain, None,
        idrl.envs.View("cells", np.zeros((1, 2, 2), np.uint8), ""),
    )  # fmt: skip
    return Moment(100, 0, episode)


def test_a_decision_is_told_by_what_decided_it():
    curious = moment([0.5, 0.4], [0.1, 0.3], [1, 1], [0.01, 0.09], chosen=1)
    said = sentence(curious)
    assert said.startswith("Action 0 promises more (μ 0.5 against 0.4), but IDS takes action 1:")
    assert "agree less on it (σ 0.3 against 0.1)" in said
    assert "teaches 9 times as much" in said
    assert "noisy" not in said
    quiet = sentence(moment([0.5, 0.49], [0.1, 0.1], [1.5, 0.5], [0.01, 0.03], chosen=1))
    assert "its return is less noisy (ρ² 0.5 against 1.5)" in quiet
    assert "σ" not in quiet
    sure = moment([0.1, 0.9], [0.1, 0.1], [1, 1], [0.01, 0.01], chosen=1)
    assert sentence(sure).startswith("IDS and greedy agree on action 1: it promises more")
    assert "action 1, which exploring tried here before:" in sentence(sure, curious)


@pytest.mark.slow
def test_the_page_fits_and_works_in_a_browser(told, tmp_path):
    browser = Browser(tmp_path)
    try:
        for width, dark in ((1200, False), (380, True)):
            browser.open(told[0] / "demo.html", width=width, dark=dark)
            browser.until("document.querySelectorAll('#maps .heatmaplayer image').length > 2")
            assert browser.run("document.getElementById('curve').data.length") == 3
            assert browser.run("document.documentElement.scrollWidth <= innerWidth")
            assert browser.errors == []
    finally:
        browser.close()
