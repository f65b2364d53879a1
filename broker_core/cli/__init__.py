"""The command `broker-core`. What a command needs is imported when it runs: `--help` and completion are quick."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    import sys

    from broker_core.cli.command_tree import run

    sys.exit(run(sys.argv[1:]))
