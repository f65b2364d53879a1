"""``target_session_attrs`` ("Parameter Key Words" of PostgreSQL's manual): its default, and the servers accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from broker_core_postgres.connect.libpq.dsn_error import DsnError

__all__ = ["satisfies_attributes", "session_attributes"]

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


def session_attributes(given: str | None, hosts: int) -> str:
    """The value of the option for so many hosts. Raises :exc:`DsnError`.

    The default is ``read-write`` for several, other than with libpq: a host is left that was demoted or made read-only.
    """
    attributes = given or ("read-write" if hosts > 1 else "any")
    if attributes not in _ACCEPTS:
        raise DsnError(f"target_session_attrs: one of {', '.join(sorted(_ACCEPTS))} is expected")
    return attributes


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
