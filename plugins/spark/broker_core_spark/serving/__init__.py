"""Serving a generation: always for the catalogue's current version, or not at all."""
