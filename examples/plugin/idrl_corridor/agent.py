"""An agent of these parts. What it declares is what runs: presets add what the task decides."""

import idrl
from idrl.agents.choosing import Greedy
from idrl.agents.spec import Learning
from idrl_corridor.boltzmann import Boltzmann
from idrl_corridor.expectile import Expectile
from idrl_corridor.fourier import Fourier
from idrl_corridor.sgd import Sgd


@idrl.agent("hopeful-boltzmann")
def hopeful_boltzmann() -> idrl.AgentSpec:
    """An expectile Q-function explored by a softmax."""
    return idrl.AgentSpec(
        trunk=Fourier(features=64),
        heads={"q": Expectile(hidden=32)},
        explore=Boltzmann(temperature=0.1),
        evaluate=Greedy(),
        optimiser=Sgd(),
        learning=Learning(
            batch_size=32, update_every_steps=1, target_every_steps=20, learning_starts_steps=50,
            replay_capacity=5_000,
        ),
    )  # fmt: skip
