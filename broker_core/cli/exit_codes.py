"""Exit codes of commands. An error prints one line on standard error that says what is wrong, and is not 0."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

__all__ = ["EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_USAGE", "exit_code_of"]

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130  # 128 + SIGINT, as in shells


def exit_code_of(command: Callable[[], object], *, debug: bool) -> int:
    """Run a command, report its error, and return its exit code. With ``debug`` the traceback is printed first."""
    try:
        code = command()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does. Python must not complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last line of defence: whatever it is, one line says so
        return _reported(error, debug=debug)


def _advice(text: str, command: str) -> str:
    """Advice on an unknown option, command or argument, if the parser gives none."""
    help_of = f"`broker-core {command} --help`" if command else "`broker-core --help`"
    if not command and text.startswith(("No such option: --config", "No such option: --debug")):
        return "; it stands after the command: `broker-core serve --config FILE`"
    if "unexpected extra argument" in text:
        return (
            "; settings are given by --config FILE" if ".toml" in text else f"; {help_of} shows what it takes"
        )
    if text.startswith("No such command") and "Did you mean" not in text:
        return f" {help_of} shows all"
    return ""


def _reported(error: Exception, *, debug: bool) -> int:
    import typer

    from broker_core.cli.error_line import say
    from broker_core.cli.options.option_values import UnusableQuestion
    from broker_core.errors import BrokerCoreError

    if isinstance(error, typer.Abort):
        return EXIT_INTERRUPTED
    if isinstance(error, typer.Exit):
        return error.exit_code
    if debug:
        import traceback

        traceback.print_exception(error)
    usage = getattr(error, "format_message", None)
    if usage is not None:  # a wrong option or argument; without a text the help was printed instead
        context = getattr(error, "ctx", None)
        command = context.command_path.partition(" ")[2] if context is not None else ""
        text = usage().replace(": Value error, ", ": ", 1)  # pydantic's words for an error of typer
        if text:
            say(f"{f'{command}: ' if command else ''}{text}{_advice(text, command)}")
        return EXIT_USAGE
    if isinstance(error, BrokerCoreError):
        say(str(error))
        return EXIT_USAGE if isinstance(error, UnusableQuestion) else EXIT_FAILED
    if isinstance(error, OSError):
        say(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
    else:
        say(f"internal error, --debug shows where: {type(error).__name__}: {error}")
    return EXIT_FAILED
