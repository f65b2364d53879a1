"""The commands `broker-core postgres ...`, a module for each."""
