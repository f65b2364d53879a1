"""The credentials that live connections were authenticated with, for a gateway that passes them on to its brokers.

Nothing is kept of a connection that is gone. Credentials are shown nowhere: not in a ``repr``, not in a log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Final, TypeAlias
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from broker_core.access.asker import Asker

__all__ = ["ClientCredentials", "Sessions"]

_Identity: TypeAlias = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """The credentials that a client was authenticated with: the name of the method and its data.

    ``original_method`` and ``original_data`` are the ones of a proxy's own client, if the proxy passes them on.
    """

    method: str
    data: bytes = field(repr=False)
    original_method: str | None = None
    original_data: str | None = field(default=None, repr=False)


class _Session:
    """The credentials of one connection; ``order`` says which credentials are the latest of a group."""

    __slots__ = ("__weakref__", "credentials", "group", "order")

    def __init__(self, credentials: ClientCredentials, group: WeakSet[_Session], order: int) -> None:
        self.credentials = credentials
        self.group = group
        self.order = order


class Sessions:
    """The latest credentials by connection (``asker.connection``, which takes weak references), and by identity."""

    def __init__(self) -> None:
        self._by_connection: WeakKeyDictionary[object, _Session] = WeakKeyDictionary()
        # A group lives as long as one of its sessions, and a session as long as its connection.
        self._groups: WeakValueDictionary[_Identity, WeakSet[_Session]] = WeakValueDictionary()
        self._order: Final = count()

    def __len__(self) -> int:
        return len(self._by_connection)

    def put(self, asker: Asker, credentials: ClientCredentials) -> None:
        """Keep the credentials of a client that was authenticated, in place of earlier ones of its connection."""
        session = self._by_connection.get(asker.connection)
        if session is not None:
            session.credentials, session.order = credentials, next(self._order)
            return
        identity = (asker.role, asker.original_principal)
        group = self._groups.get(identity)
        if group is None:
            group = self._groups[identity] = WeakSet()
        session = _Session(credentials, group, next(self._order))
        group.add(session)
        self._by_connection[asker.connection] = session

    def end(self, asker: Asker) -> None:
        """Forget the credentials of a connection that is over."""
        self._by_connection.pop(asker.connection, None)

    def of(self, asker: Asker) -> ClientCredentials | None:
        """The credentials of one connection; ``None`` if it has none, or is over."""
        session = self._by_connection.get(asker.connection)
        return None if session is None else session.credentials

    def has_any(self, role: str | None, original_principal: str | None) -> bool:
        """Whether a live connection has this identity, however many have."""
        group = self._groups.get((role, original_principal))
        return bool(group)

    def any_of(self, role: str | None, original_principal: str | None) -> ClientCredentials | None:
        """The latest credentials of any live connection with this identity; ``None`` if there is none."""
        group = self._groups.get((role, original_principal))
        if group is None:
            return None
        latest = max(group, key=lambda session: session.order, default=None)
        return None if latest is None else latest.credentials
