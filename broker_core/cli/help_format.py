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


class _PlainHelp:
    """Help as plain text unless it goes to a terminal, of a command and of a group: the base of both is not public."""

    epilog: str | None
    rich_markup_mode: Any

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.rich_markup_mode = "rich" if sys.stdout.isatty() else None
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples of :func:`~.help_examples.examples` line by line, so that they can be copied."""
        title, *lines = [without_markup(line) for line in (self.epilog or "").split("\n\n")]
        if title != TITLE:
            super().format_epilog(ctx, formatter)  # type: ignore[misc]
            return
        with formatter.section(title):
            for line in lines:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")

    def get_short_help_str(self, limit: int = _IN_A_LIST) -> str:
        return super().get_short_help_str(max(limit, _IN_A_LIST))  # type: ignore[misc,no-any-return]


class HelpCommand(_PlainHelp, typer.core.TyperCommand):
    """A command whose help is plain text unless it goes to a terminal."""


class HelpGroup(_PlainHelp, typer.core.TyperGroup):
    """A group with plain help; called without a command it shows its help, and ends as wrong usage does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            text = ctx.get_help()
            if text:  # rich has printed it itself
                print(text)
            raise typer.Exit(2)
        return super().parse_args(ctx, args)
