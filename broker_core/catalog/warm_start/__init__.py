"""Snapshots in files beside the catalogue, so that a restart need not read the catalogue itself."""
