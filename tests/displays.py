"""Displays that tests pass to `idrl.train`."""


class Dies:
    """Ends the process past a step, as far as the run can tell."""

    def __init__(self, at):
        self.at = at

    def start(self):
        pass

    def update(self, progress, config):
        if progress.steps >= self.at:
            raise MemoryError
