"""The commands that start a server, and look at its settings before."""
