"""Errors as one line on standard error: foreign text cannot break it, and it shows no password."""

from __future__ import annotations

import sys

from broker_core.redaction import printable, without_credentials

__all__ = ["one_line", "say"]


def say(text: str) -> None:
    """Print one line to standard error, after the output so far and without the passwords of addresses."""
    sys.stdout.flush()
    print(f"broker-core: {without_credentials(one_line(text))}", file=sys.stderr, flush=True)


def one_line(text: str) -> str:
    """Text of an error without line breaks and control sequences of a terminal."""
    return printable(" ".join(text.split()))
