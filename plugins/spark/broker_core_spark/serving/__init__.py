"""Serving a generation: for the catalogue's current version, or not at all."""
