"""The settings of MinAtar's paper."""

from __future__ import annotations

from idrl.envs.presets import PresetContext, Settings, discrete


@discrete
def preset(task: PresetContext) -> Settings:
    """Young & Tian 2019 (their section on experiments and released `dqn.py`), per frame.

    Their DQN has RMSProp, which every agent declared with it keeps. The IDS agents keep Adam, as in
    their own paper: K heads and a return head send gradients of different scales into one
    optimiser, which Adam evens out per weight. Its step size is RMSProp's, its ε the paper's.
    """
    dense = {"hidden": [128]}
    adam = {"kind": "adam", "lr": 2.5e-4, "b2": 0.999, "eps": 0.01 / 32}
    # PyTorch's ε is outside the root, where theirs is 0.01: inside it is about 0.01².
    rmsprop = {"lr": 2.5e-4, "eps": 1e-4}
    return {
        "trunk": {"kind": "minatar_cnn", "channels": 16},
        "kinds": {
            "q": dense,
            "ensemble": dense,
            # No game has a negative reward; one every fourth frame for ever is worth 25 at γ = 0.99
            "categorical": {**dense, "v_min": 0.0, "v_max": 25.0},
            "quantile": {**dense, "quantiles": 51},  # as many numbers as C51 has atoms
            "implicit": dense,
            # a fifth of the replay, every 1,000 updates
            "bayesian": {**dense, "fit_batch": 20_000},
            "epsilon_greedy": {"start": 1.0, "end": 0.1, "decay_steps": 100_000},
        },
        "optimiser": task.by_optimiser(adam=adam, rmsprop=rmsprop),
        "learning": {
            "gamma": 0.99,
            "batch_size": 32,
            "update_every_steps": 1,
            "target_every_steps": 1_000,
            "learning_starts_steps": 5_000,
            "replay_capacity": 100_000,
        },
        "training": {"steps": 5_000_000, "envs": 1, "log_every_steps": 10_000},
        # One environment: each drops the episode that it is in at the end, the likelier the longer.
        # Of episodes of 300 frames on average (exponential) ten environments of 3000 frames score
        # 9% too little, of 1000 frames 30%; one of 30,000 less than 1%.
        "evaluation": {"every_steps": 250_000, "steps": 30_000, "envs": 1},
    }
