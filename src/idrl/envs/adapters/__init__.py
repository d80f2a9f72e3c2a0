"""Environments of other libraries behind the two protocols."""
