"""Snapshots in files of a folder, so that a restart need not read, or ask for, all of their topics again."""
