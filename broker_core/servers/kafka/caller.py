"""Who asks by a request of a Kafka client, in which namespace, and until when: what permissions and listings need."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.access.asker import Asker
from broker_core.names import NamespaceName

__all__ = ["Caller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """``asker`` asks, in ``namespace``; its role is that of the principal ``User:ROLE``, and without one it is
    ``User:ANONYMOUS``. ``deadline`` is in loop time.
    """

    asker: Asker
    namespace: NamespaceName
    deadline: float

    @property
    def principal(self) -> str:
        """The principal of ACLs."""
        return "User:ANONYMOUS" if self.asker.role is None else f"User:{self.asker.role}"
