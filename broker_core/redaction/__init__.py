"""Redaction of foreign text: without control characters, without secrets."""

from __future__ import annotations

from broker_core.redaction.credentials import (
    MASK,
    goes_with_login,
    holds_connection,
    holds_login,
    is_secret_name,
    may_hold_credentials,
    names_secret_option,
    without_credentials,
)
from broker_core.redaction.printable_text import cut_short, printable, quoted

__all__ = [
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
    "without_credentials",
]
