"""The examples at the end of a command's help."""

from __future__ import annotations

from typing import Final

__all__ = ["TITLE", "examples"]

#: The heading of the examples.
TITLE: Final = "Examples"


def examples(*lines: str) -> str:
    """An epilogue for typer, one line each; a line that begins with ``#`` explains the next one."""
    shown = [f"[dim]{line}[/dim]" if line.startswith("#") else line.replace("[", r"\[") for line in lines]
    return "\n\n".join([f"[bold]{TITLE}[/bold]", *shown])
