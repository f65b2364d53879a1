"""Redaction of foreign text: without control characters, without secrets."""

from __future__ import annotations

from broker_core.redaction.credentials import (
    LONGEST_TEXT,
    MASK,
    goes_with_login,
    holds_connection,
    holds_login,
    is_secret_name,
    may_hold_credentials,
    names_secret_option,
    shown,
    shown_each,
    without_credentials,
)
from broker_core.redaction.printable_text import cut_short, printable, quoted

__all__ = [
    "LONGEST_TEXT",
    "MASK",
    "cut_short",
    "goes_with_login",
    "holds_connection",
    "holds_login",
    "is_secret_name",
    "may_hold_credentials",
    "names_secret_option",
    "printable",
    "quoted",
    "shown",
    "shown_each",
    "without_credentials",
]
