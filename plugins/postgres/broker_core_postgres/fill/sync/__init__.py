"""Mirroring a cluster, or the embedded catalogue, into the database."""
