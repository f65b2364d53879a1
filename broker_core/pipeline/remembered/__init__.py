"""Answers of plugins that are remembered, each kind by its own rule, in one bounded store."""
