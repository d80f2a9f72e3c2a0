"""A rule: actions with probability ∝ exp(Q / temperature)."""

from dataclasses import dataclass

import jax

import idrl


@idrl.rule("boltzmann")
@dataclass(frozen=True)
class Boltzmann(idrl.Rule):
    """Better actions more often, by a softmax over the mean of the heads."""

    temperature: float = 0.1

    def check(self, where: str) -> None:
        if self.temperature <= 0:
            raise idrl.IdrlError(f"{where}.temperature is {self.temperature}; it must be positive.")

    def __call__(self, beliefs: idrl.Beliefs, context: idrl.RuleContext) -> idrl.Decision:
        return idrl.rules.drawn(
            beliefs.q_heads, beliefs.q_heads.mean(-2) / self.temperature, context.key,
            mask=context.mask, return_variance=beliefs.return_variance,
        )  # fmt: skip

    def metrics(self, decision, beliefs, context):
        """Reaches metrics.csv, TensorBoard and W&B."""
        return {"entropy": jax.scipy.special.entr(decision.probs).sum(-1)}
