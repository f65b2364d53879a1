"""The commands of `broker-core`, a module each."""
