"""The examples at the end of a command's help."""

from __future__ import annotations

__all__ = ["examples"]


def examples(*lines: str) -> str:
    """An epilogue of typer's, one line each; a line that begins with ``#`` explains the next one."""
    shown = [f"[dim]{line}[/dim]" if line.startswith("#") else line.replace("[", r"\[") for line in lines]
    return "\n\n".join(["[bold]Examples[/bold]", *shown])
