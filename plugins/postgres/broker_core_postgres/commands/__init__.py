"""The commands `broker-core postgres ...`, a module for each."""

__all__: list[str] = []
