"""A run from its start to its end: settings and an environment in, a folder out."""
