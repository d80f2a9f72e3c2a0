"""A rule: actions with probability ∝ exp(Q / temperature)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import idrl


@idrl.rule("boltzmann")
@dataclass(frozen=True)
class Boltzmann(idrl.Rule):
    """Better actions more often, by a softmax over the mean of the heads."""

    temperature: float = 0.1

    def check(self, where: str) -> None:
        if self.temperature <= 0:
            raise idrl.IdrlError(f"{where}.temperature is {self.temperature}; it is positive.")

    def __call__(self, beliefs: idrl.Beliefs, context: idrl.RuleContext) -> idrl.Decision:
        # `greedy` fills in what is shown of a decision (μ, σ, regret); the choice is replaced.
        shown = idrl.rules.greedy(
            beliefs.q_heads, return_variance=beliefs.return_variance, mask=context.mask
        )
        logits = shown.mu / self.temperature
        if context.mask is not None:
            logits = jnp.where(context.mask, logits, -jnp.inf)
        action = jax.random.categorical(context.key, logits).astype(shown.action.dtype)
        return shown._replace(action=action, probs=jax.nn.softmax(logits))

    def metrics(self, decision, beliefs, context):
        """Reaches metrics.csv, TensorBoard and W&B."""
        return {"entropy": jax.scipy.special.entr(decision.probs).sum(-1)}
