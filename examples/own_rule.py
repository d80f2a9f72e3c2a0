"""An exploration rule of your own, on the heads of a built-in agent.

python examples/own_rule.py
"""

from dataclasses import dataclass

import jax.numpy as jnp

import idrl


@idrl.rule("median_boltzmann")
@dataclass(frozen=True)
class MedianBoltzmann(idrl.Rule):
    """Draw an action with probabilities softmax(median over the heads / temperature)."""

    temperature: float = 0.05  # fields are settings: explore.temperature=0.1

    def check(self, where):
        if self.temperature <= 0:
            raise idrl.IdrlError(f"{where}.temperature is {self.temperature}; it must be positive.")

    def __call__(self, beliefs, context):  # beliefs.q_heads: [environments, heads, actions]
        logits = jnp.median(beliefs.q_heads, axis=-2) / self.temperature
        return idrl.rules.drawn(beliefs.q_heads, logits, context.key, mask=context.mask)


if __name__ == "__main__":
    for settings in (["explore.kind=median_boltzmann"], ["explore.kind=ids", "explore.lam=2"]):
        run = idrl.train("bootstrapped-dqn", "deep_sea/6", seeds=4, steps=1_200, settings=settings)
        regret = run.episodes["regret"].sum() / len(run.seeds)
        print(f"{settings[0]}: regret {regret:.1f} per seed in 200 episodes")
