"""The principal of a client: its authenticated role, and the end of its credentials."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from broker_core.immutable import value_maker

__all__ = ["LONGEST_ROLE", "Principal", "Verified"]

#: Characters of a role, at most: it is logged, and is a part of keys of caches.
LONGEST_ROLE: Final = 1024
#: Control characters, halves of surrogate pairs, and separators of lines: no log or header can show them.
_UNFIT: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})


@dataclass(frozen=True, slots=True, init=False)
class Principal:
    """An authenticated client; immutable.

    ``role`` is its name for authorization: text that is not blank, without control characters, of at most
    1,024 characters. ``expires_at`` is the end of its credentials in seconds since 1970 (Unix time): then the server
    asks the client for new credentials, or closes the connection. ``None`` is no end.

    Raises :exc:`TypeError` for a role that is no string and an end that is no number, :exc:`ValueError` for other roles
    and for an end that is not finite.
    """

    role: str
    expires_at: float | None = None

    def __new__(cls, role: str, expires_at: float | None = None) -> Self:
        if not isinstance(role, str):
            raise TypeError(f"role must be a string, not {type(role).__name__}")
        # The characters of a subclass of str, whose own methods may change.
        role = str.__str__(role)
        if not role.strip():
            raise ValueError("role must name the client: it is blank")
        if len(role) > LONGEST_ROLE:
            raise ValueError(f"role has {len(role)} characters: at most {LONGEST_ROLE} are possible")
        if not role.isprintable() and any(unicodedata.category(character) in _UNFIT for character in role):
            raise ValueError("role has control characters")
        if expires_at is not None:
            if isinstance(expires_at, bool) or not isinstance(expires_at, int | float):
                raise TypeError(
                    f"expires_at must be a number of seconds or None, not {type(expires_at).__name__}"
                )
            expires_at = float(expires_at)
            if not math.isfinite(expires_at):
                raise ValueError("expires_at must be finite")
        principal: Self = _make_principal(cls, role, expires_at)
        return principal


_make_principal = value_maker(Principal)

#: A principal by its credentials, or a coroutine of it if the verdict takes longer than the event loop may be held.
Verified: TypeAlias = Principal | Coroutine[Any, Any, Principal]
