"""Settings as they may be shown: what goes by the name of a secret is masked, and so are passwords within values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from broker_core.credentials import MASK, holds_connection, is_secret_name, without_credentials

__all__ = ["MASK", "masked"]

#: The value of ``ssl_key`` and the like may be the file that a key is in.
_FILE: Final = re.compile(r"(?:/|\./|\.\./|~/)[^\s:]*\.(?:pem|key|crt|cer|der|p12|pfx|jks|json|txt)")
_KEYWORDS: Final = re.compile(
    r"""\s*(?:[A-Za-z][\w .-]*?\s*=\s*(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s;'"]*)(?:\s*[;\s]\s*|\s*$))+"""
)


def masked(path: tuple[str, ...], value: Any) -> Any:
    """``value`` as it may be shown: the whole of a secret is :data:`MASK`, of an address or a DSN only the password.

    A plugin's own name (``token-filter``) says nothing about its settings.
    """
    if isinstance(value, Mapping):
        return {key: masked((*path, str(key)), inner) for key, inner in value.items()}
    names = path[2:] if path[0] == "plugins" else path[-1:]
    if any(is_secret_name(name) for name in names) and value not in (None, "", False, True):
        return value if isinstance(value, str) and _FILE.fullmatch(value) else MASK
    if isinstance(value, list | tuple):
        return [masked(path, inner) for inner in value]
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
