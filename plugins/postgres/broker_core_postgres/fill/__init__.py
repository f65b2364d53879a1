"""Filling the database: from a file, from a cluster or the embedded catalogue, or property by property."""
