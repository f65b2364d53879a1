"""The caller of a request of a Kafka client, its namespace and deadline, for permissions and listings."""

from __future__ import annotations

from dataclasses import dataclass, field

from broker_core.access import Asker, note_held
from broker_core.memory import Permit
from broker_core.names import NamespaceName
from broker_core.servers.kafka.pages.answer_page import AnswerPage

__all__ = ["Caller"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller ``asker`` in ``namespace``; its role is that of the principal ``User:ROLE``, and without one it is
    ``User:ANONYMOUS``. ``deadline`` is in loop time. ``held`` are permits for memory that the answer needs until it has
    left, and ``pinned`` are shared objects that have permits as long as they live.
    """

    asker: Asker
    namespace: NamespaceName
    deadline: float
    held: list[Permit] = field(default_factory=list, repr=False, compare=False)
    pinned: list[object] = field(default_factory=list, repr=False, compare=False)
    #: The wanted page; ``None``: all.
    page: AnswerPage | None = field(default=None, repr=False, compare=False)

    def hold_permit(self, permit: Permit) -> None:
        """Hold a permit until the answer has left."""
        note_held(self.asker.connection, permit)
        self.held.append(permit)

    def release(self) -> None:
        """Give back the permits of the answer; once is enough."""
        self.pinned.clear()
        while self.held:
            self.held.pop().release()

    @property
    def principal(self) -> str:
        """The principal of ACLs."""
        return "User:ANONYMOUS" if self.asker.role is None else f"User:{self.asker.role}"
