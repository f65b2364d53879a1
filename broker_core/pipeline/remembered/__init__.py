"""Remembered answers of plugins, each kind by its own rule, in one bounded store."""
