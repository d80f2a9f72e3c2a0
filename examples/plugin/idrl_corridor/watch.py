"""A callback: ends a run once every seed has solved its task."""

import idrl


class StopWhenSolved(idrl.Callback):
    def __init__(self, score: float):
        self.score = score

    def on_evaluation(self, evaluation: idrl.EvaluationResult) -> bool:
        return bool((evaluation.score.return_mean < self.score).any())
