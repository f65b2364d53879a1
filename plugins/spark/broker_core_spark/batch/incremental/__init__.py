"""Incremental builds: keeping unchanged segments of the last generation."""
