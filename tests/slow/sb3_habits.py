"""Run by the Python of an environment with Stable-Baselines3: what its own functions make of an
agent of ours, and ours of a model of theirs, as one line of JSON.

    python sb3_habits.py SITE RUN

Packages that it lacks are taken from the folder SITE, at the end of the path.
"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.append(sys.argv[1])

from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import idrl

TASK = "CartPole-v1"
agent = idrl.load(sys.argv[2])
env = make_vec_env(TASK, n_envs=4, seed=7)
returns, _ = evaluate_policy(agent.sb3(), env, n_eval_episodes=100, return_episode_rewards=True)
explored, _ = evaluate_policy(agent.sb3(), env, n_eval_episodes=10, deterministic=False)

with tempfile.TemporaryDirectory() as folder:
    callback = EvalCallback(
        env, best_model_save_path=folder, n_eval_episodes=5, eval_freq=1, verbose=0
    )
    callback.init_callback(agent.sb3(env))
    went_on = callback.on_step()
    saved = repr(idrl.load(Path(folder) / "best_model"))

model = DQN("MlpPolicy", TASK, learning_starts=50, seed=0)
model.learn(300)
theirs, _ = evaluate_policy(model, env, n_eval_episodes=20, return_episode_rewards=True)
ours = idrl.evaluate(model, f"gym/{TASK}", episodes=20)
comparison = idrl.compare(sys.argv[2], model, episodes=20)
print(
    json.dumps(
        {
            "returns": list(map(float, returns)),
            "explored": float(explored),
            "callback": [bool(went_on), float(callback.best_mean_reward), saved],
            "theirs": list(map(float, theirs)),
            "ours": [float(ours.return_mean), float(ours.return_std)],
            "verdict": comparison.verdict,
        }
    )
)
