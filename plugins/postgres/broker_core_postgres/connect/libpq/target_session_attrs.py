"""``target_session_attrs``: which servers a session accepts (PostgreSQL's manual, "Parameter Key Words")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

__all__ = ["SESSION_ATTRIBUTES", "satisfies_attributes"]

_ACCEPTS: Final[dict[str, Callable[[bool, bool], bool]]] = {
    # Arguments: the server is in recovery; it is read-only by its configuration.
    "any": lambda _recovers, _refuses: True,
    "primary": lambda recovers, _refuses: not recovers,
    "standby": lambda recovers, _refuses: recovers,
    "prefer-standby": lambda recovers, _refuses: recovers,
    "read-write": lambda recovers, refuses: not recovers and not refuses,
    "read-only": lambda recovers, refuses: recovers or refuses,
}
_STATE: Final = (
    "SELECT pg_catalog.pg_is_in_recovery(), "
    "pg_catalog.current_setting('default_transaction_read_only')::pg_catalog.bool"
)
#: The second value is the server's own: it ignores settings of the session, and follows a reload of the configuration.
_STATE_OF_SERVER: Final = (
    "SELECT pg_catalog.pg_is_in_recovery(), (SELECT reset_val FROM pg_catalog.pg_settings "
    "WHERE name = 'default_transaction_read_only') = 'on'"
)
#: The known values of the option.
SESSION_ATTRIBUTES: Final = frozenset(_ACCEPTS)


async def satisfies_attributes(connection: Any, attributes: str, *, in_use: bool = False) -> bool:
    """Whether the server of a session is acceptable.

    Of a new session, before it changes any setting; or of one ``in_use``, whatever it has set itself.
    """
    if attributes == "any":
        return True
    settings = connection.get_settings()
    names = ("in_hot_standby", "default_transaction_read_only")
    reported = [None if in_use else getattr(settings, name, None) for name in names]
    if None in reported:  # a pooler reports neither
        state = await connection.fetchrow(_STATE_OF_SERVER if in_use else _STATE)
    else:
        state = [value == "on" for value in reported]
    return _ACCEPTS[attributes](state[0], state[1])
