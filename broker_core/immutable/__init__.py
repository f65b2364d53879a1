"""Objects that nobody can change: sealed fields, and copies with some fields changed."""
