"""Figures and tables. They read run folders, never live training."""
