"""The caller of a Kafka request, and its rights in its namespace by the ACLs of the catalogue.

ACLs only narrow the rights by the rules of the settings and the plugins.

The authorizer is on if the settings name super users, or allow everybody what no ACL is about, or if any ACL is stored:
no stored ACL is without effect. Each request checks once whether ACLs have changed (:meth:`is_current`), so that a
change by another process binds the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from broker_core.access import Asker, host_of, note_held
from broker_core.catalog import AclRow, AclVersion, KafkaAclReader
from broker_core.kafka.acls import (
    CLUSTER_NAME,
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    AclBinding,
    AclRules,
    AskerRules,
    NamedChunk,
    Operation,
    ResourceType,
    SortedNames,
    binding_of,
)
from broker_core.memory import Permit
from broker_core.names import NamespaceName
from broker_core.servers.kafka.pages.answer_page import AnswerPage
from broker_core.settings import KafkaSettings

__all__ = ["Authorizer", "Caller"]


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


@dataclass(frozen=True, slots=True)
class _Known:
    """The rules of a namespace as they were at a version."""

    version: AclVersion
    rules: AclRules


class Authorizer:
    """Decides for the principal and the host of a call, in its namespace; on one event loop.

    ``reader`` is ``None`` without a catalogue: then there are no ACLs. Until they are read, everything is denied.
    Without settings and reader all is allowed.
    """

    def __init__(self, settings: KafkaSettings | None = None, reader: KafkaAclReader | None = None) -> None:
        settings = settings or KafkaSettings()
        self._super_users = settings.super_users
        self._everyone = settings.allow_everyone_if_no_acl_found
        self._reader = reader
        self._always = bool(self._super_users or self._everyone)
        self._stored = False
        self._known: dict[NamespaceName, _Known] = {}
        #: The rules before any ACLs were read.
        self._none = AclRules((), super_users=self._super_users, everyone=self._everyone and reader is None)

    @property
    def enabled(self) -> bool:
        """Whether there are ACLs; without them, all is allowed, and the APIs of ACLs are refused (54)."""
        return self._always or self._stored

    def close(self) -> None:
        """Close the source of ACLs."""
        if self._reader is not None:
            self._reader.close()

    def is_current(self, caller: Caller) -> bool:
        """Whether all changes were read; it is asked before each request, and if not, :meth:`refresh` is called."""
        if self._reader is None:
            return True
        now = self._reader.version_now(caller.namespace)
        if now is None:
            return False
        self._stored = now.stored
        if not self.enabled:
            return True  # no ACLs are asked
        found = self._known.get(caller.namespace)
        return found is not None and found.version == now

    async def refresh(self, caller: Caller) -> None:
        """Read the changes. Raises :exc:`~broker_core.errors.ListingFailed` if they cannot be read."""
        if self._reader is None:
            return
        version, rows = await self._reader.read(caller.namespace)
        found = self._known.get(caller.namespace)
        # Reads may overtake each other: an older result does not replace a newer one.
        if (
            found is None
            or found.version.catalog_id != version.catalog_id
            or found.version.number < version.number
        ):
            self._known[caller.namespace] = _Known(version, self._rules(rows))
        elif found.version.number == version.number:
            self._known[caller.namespace] = _Known(version, found.rules)
        if not self.is_current(caller):  # it cannot be looked at now, or has changed again
            self._stored = self._stored or version.stored

    def bindings(self, caller: Caller) -> tuple[AclBinding, ...]:
        """All ACLs of the namespace."""
        return self._of(caller.namespace).bindings

    def matching(self, caller: Caller) -> tuple[AclBinding, ...]:
        """The ACLs that are about this principal and host."""
        return self._asker(caller).bindings

    def allows(self, call: Caller, operation: Operation, kind: ResourceType, name: str) -> bool:
        """Whether the client may do this with one resource."""
        return not self.enabled or self._asker(call).allows(operation, kind, name)

    def chunk_mask(
        self, call: Caller, operation: Operation, chunk: NamedChunk
    ) -> npt.NDArray[np.bool_] | None:
        """Whether the client may do this with each topic of a chunk; ``None``: with all."""
        return self._asker(call).chunk_mask(operation, chunk) if self.enabled else None

    def chunk_operations(
        self, call: Caller, chunks: Sequence[NamedChunk]
    ) -> list[npt.NDArray[np.int32] | None]:
        """The bits of the client's operations on each topic, by chunk; ``None``: all, on all.

        They are of one state of the ACLs. For any thread: for many topics it takes long.
        """
        rules = self._asker(call)
        if not self.enabled or rules.free:
            return [None] * len(chunks)
        return [rules.operations_column(SortedNames(chunk.names)) for chunk in chunks]

    def topic_operations(self, call: Caller, name: str) -> int:
        """The bits of the client's operations on a topic."""
        return self._asker(call).operations(ResourceType.TOPIC, name) if self.enabled else TOPIC_OPERATIONS

    def cluster_operations(self, call: Caller) -> int:
        """The bits of the client's operations on the cluster."""
        if not self.enabled:
            return CLUSTER_OPERATIONS
        return self._asker(call).operations(ResourceType.CLUSTER, CLUSTER_NAME)

    def _of(self, namespace: NamespaceName) -> AclRules:
        found = self._known.get(namespace)
        return self._none if found is None else found.rules

    def _asker(self, caller: Caller) -> AskerRules:
        return self._of(caller.namespace).of(caller.principal, host_of(caller.asker.remote_address))

    def _rules(self, rows: tuple[AclRow, ...]) -> AclRules:
        return AclRules(map(binding_of, rows), super_users=self._super_users, everyone=self._everyone)
