"""`broker-core --version`."""

from __future__ import annotations

__all__ = ["print_version"]


def print_version() -> None:
    """Print the version of this distribution."""
    from broker_core import __version__

    print(f"broker-core {__version__}")
