"""The commands `broker-core postgres ...`, one module each."""
