"""Immutable objects: sealed fields, and copies with some fields changed."""
