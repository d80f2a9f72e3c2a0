"""bsuite's exploration and noise experiments: their sweeps, their scores, one command."""
