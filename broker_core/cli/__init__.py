"""The command `broker-core`. A command's modules are imported when it is called: help and completion are quick."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    import sys

    from broker_core.cli.early_signals import end_by_early_signals, note_hangups, starts_a_server

    end_by_early_signals()
    arguments = sys.argv[1:]
    if starts_a_server(arguments):
        note_hangups()
    if arguments == ["--version"]:  # scripts call it at each start: it needs no parser of arguments
        from broker_core.cli.exit_codes import exit_code_of
        from broker_core.cli.version import print_version

        sys.exit(exit_code_of(print_version, debug=False))
    from broker_core.cli.command_tree import is_of_the_core, run
    from broker_core.memory import keep_pandas_out

    keep_pandas_out()
    code = run(arguments)
    if is_of_the_core(arguments):
        # Our commands close what they open: looking for cycles among all imported objects takes longer than printing
        # most answers. A plugin's command may rely on it.
        import gc

        gc.freeze()
    sys.exit(code)
