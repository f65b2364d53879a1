"""How the command line ends: an error is one line on standard error that names what is wrong, and a non-zero exit."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final

from broker_core.redaction.credentials import without_credentials
from broker_core.redaction.printable import printable

__all__ = ["EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_USAGE", "ended", "one_line", "say"]

EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130  # 128 + SIGINT, as of a shell's own


def say(text: str) -> None:
    """One line on standard error, without the passwords of addresses in it, behind what was printed so far."""
    sys.stdout.flush()
    print(f"broker-core: {without_credentials(one_line(text))}", file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Text of an error without line breaks and without what a terminal would obey."""
    return printable(" ".join(text.split()))


def ended(run: Callable[[], object], *, debug: bool) -> int:
    """The exit code of a command, its error reported. With ``debug`` an error's traceback is printed first."""
    import typer

    from broker_core.cli.options.question import UnusableQuestion
    from broker_core.errors import BrokerCoreError

    try:
        code = run()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # Whoever read our output has enough of it, as `head` does. Python must not complain about it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except (KeyboardInterrupt, typer.Abort):
        return EXIT_INTERRUPTED
    except typer.Exit as left:
        return left.exit_code
    except Exception as error:  # noqa: BLE001 - the last line of defence: whatever it is, one line says so
        if debug:
            import traceback

            traceback.print_exc()
        usage = getattr(error, "format_message", None)
        if usage is not None:  # a wrong option or argument; without a text the help was printed instead
            context = getattr(error, "ctx", None)
            command = context.command_path.partition(" ")[2] if context is not None else ""
            if usage():
                say(f"{command}: {usage()}" if command else usage())
            return EXIT_USAGE
        if isinstance(error, BrokerCoreError):
            say(str(error))
            return EXIT_USAGE if isinstance(error, UnusableQuestion) else EXIT_FAILED
        if isinstance(error, OSError):
            say(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error))
        else:
            say(f"internal error, --debug shows where: {type(error).__name__}: {error}")
        return EXIT_FAILED
