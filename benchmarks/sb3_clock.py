"""How fast Stable-Baselines3 and SBX train. Needs stable-baselines3 only."""

from __future__ import annotations

import time

from stable_baselines3.common.callbacks import BaseCallback


class Clock(BaseCallback):
    """Stops after `seconds`, or after so many steps."""

    def __init__(self, seconds: float, steps: int = 10**9):
        super().__init__()
        self.seconds, self.steps = seconds, steps

    def _on_training_start(self) -> None:
        self.begin, self.first, self.rate = time.perf_counter(), self.num_timesteps, 0.0

    def _on_step(self) -> bool:
        done, self.spent = self.num_timesteps - self.first, time.perf_counter() - self.begin
        self.rate = done / self.spent
        return done % 64 > 0 or (self.spent < self.seconds and done < self.steps)
