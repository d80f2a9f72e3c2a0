"""Trunks (observation → features) and heads (features → values, with their losses)."""
