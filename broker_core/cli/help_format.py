"""Rendering of help: by rich on a terminal, else as plain text, which takes a third less time and can be searched."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import typer
import typer.core

from broker_core.cli.help_examples import TITLE

__all__ = ["HelpCommand", "HelpGroup", "without_markup"]

#: Characters of a help text in a list of commands, which breaks lines itself: typer's 45 would cut sentences off.
_IN_A_LIST: Final = 1000
#: A tag of rich's markup, as ``[bold]`` or ``[/bold]``, and the backslashes before it.
_TAG: Final = re.compile(r"(\\*)\[[a-z#/@][^[]*?]")


def without_markup(text: str) -> str:
    """Text of rich's markup without its tags; escaped brackets stay."""
    return _TAG.sub(lambda tag: tag[0] if tag[1] else "", text).replace("\\[", "[")


def _choose(command: Any) -> None:
    command.rich_markup_mode = "rich" if sys.stdout.isatty() else None


def _write_examples(epilog: str | None, formatter: Any) -> bool:
    """Write the examples of :func:`~.help_examples.examples` line by line, so that they can be copied."""
    title, *lines = [without_markup(line) for line in (epilog or "").split("\n\n")]
    if title != TITLE:
        return False
    with formatter.section(title):
        for line in lines:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")
    return True


class HelpCommand(typer.core.TyperCommand):
    """A command whose help is plain text unless it goes to a terminal."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _choose(self)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if not _write_examples(self.epilog, formatter):
            super().format_epilog(ctx, formatter)

    def get_short_help_str(self, limit: int = _IN_A_LIST) -> str:
        return super().get_short_help_str(max(limit, _IN_A_LIST))


class HelpGroup(typer.core.TyperGroup):
    """A group with plain help; called without a command it shows its help, and ends as wrong usage does."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _choose(self)
        super().format_help(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if not _write_examples(self.epilog, formatter):
            super().format_epilog(ctx, formatter)

    def get_short_help_str(self, limit: int = _IN_A_LIST) -> str:
        return super().get_short_help_str(max(limit, _IN_A_LIST))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            text = ctx.get_help()
            if text:  # rich has printed it itself
                print(text)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)
