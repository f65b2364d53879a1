"""Masking of secrets in settings that are shown: values of secret names, and passwords within values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from broker_core.redaction import (
    MASK,
    goes_with_login,
    holds_connection,
    holds_login,
    is_secret_name,
    names_secret_option,
    without_credentials,
)

__all__ = ["MASK", "masked"]

#: The value of ``ssl_key`` and the like may be the file that a key is in.
_FILE: Final = re.compile(r"(?:/|\./|\.\./|~/)[^\s:]*\.(?:pem|key|crt|cer|der|p12|pfx|jks|json|txt)")
#: The place of a key: a file, or a variable of the environment.
_PLACE: Final = re.compile(r"file:.+|env:[A-Za-z_][A-Za-z0-9_]*", re.DOTALL)
_KEYWORDS: Final = re.compile(
    r"""\s*(?:[A-Za-z][\w .-]*?\s*=\s*(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;'"]*)(?:\s*[;\s]\s*|\s*$))+"""
)


def masked(path: tuple[str, ...], value: Any) -> Any:
    """``value`` as it may be shown: a secret is wholly :data:`MASK`, an address or a DSN only in its password.

    A plugin's own name (``token-filter``) says nothing about its settings.
    """
    if isinstance(value, Mapping):
        return {key: masked((*path, str(key)), inner) for key, inner in value.items()}
    names = path[2:] if path[0] == "plugins" else path[-1:]
    if _is_secret(names) and value not in (None, "", False, True):
        of_plugin = path[0] == "plugins"  # a plugin's settings may have other forms
        is_place = isinstance(value, str) and (
            _FILE.fullmatch(value) or (not of_plugin and _PLACE.fullmatch(value))
        )
        return value if is_place else MASK
    if isinstance(value, list | tuple):
        # The words of a command line: the one after `--token` is a secret.
        return [
            MASK
            if isinstance(before, str) and names_secret_option(before) and isinstance(inner, str)
            else masked(path, inner)
            for before, inner in zip([None, *value], value, strict=False)
        ]
    if isinstance(value, str):
        if (
            value
            and any(map(holds_connection, names))
            and "://" not in value
            and not _KEYWORDS.fullmatch(value)
        ):
            return MASK  # in a form that is not known here
        return without_credentials(value, value=True)
    return value


def _is_secret(names: tuple[str, ...]) -> bool:
    """Whether a value is a secret, by its own name or that of a table around it."""
    if not any(map(is_secret_name, names)):
        return False
    *tables, own = names
    by_table = [name for name in tables if is_secret_name(name)]
    return is_secret_name(own) or not all(map(holds_login, by_table)) or not goes_with_login(own)
