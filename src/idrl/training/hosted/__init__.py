"""Training on environments that live on the host."""
