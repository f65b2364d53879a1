"""The audit log: one line for each attempt of a client to change something, whatever its protocol.

The lines are part of the server's log, by a logger of their own, and are never folded into a count.
docs/how-to/monitor.md#changes-in-the-log
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, get_args

import structlog

from broker_core.access.asker import Asker
from broker_core.logs import EachLine, info_each, shown, shown_each

__all__ = ["ACTIONS", "AUDIT_LOGGER", "OUTCOMES", "Action", "Outcome", "audit", "audit_lines"]

#: The field ``logger`` of the lines.
AUDIT_LOGGER: Final = "broker_core.audit"

#: What a client may want to change.
Action: TypeAlias = Literal[
    "create_topic",
    "put_topic",
    "change_topic",
    "delete_topic",
    "add_partitions",
    "import_topics",
    "create_namespace",
    "delete_namespace",
    "alter_configs",
    "create_acl",
    "delete_acl",
]
#: ``abandoned``: the client left before anything was changed.
Outcome: TypeAlias = Literal["done", "unchanged", "refused", "failed", "abandoned"]

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)

_log = structlog.get_logger(AUDIT_LOGGER)


def audit(
    asker: Asker,
    action: Action,
    outcome: Outcome,
    *,
    namespace: str = "",
    target: str = "",
    cause: str = "",
    **numbers: int | str | None,
) -> None:
    """Log that ``asker`` wanted to change something, and what became of it.

    ``target`` is the name of what is changed, such as a topic, ``cause`` why it was not. ``numbers`` are further
    fields: counts, codes and versions. No field may have a value that a client gave to something, such as a property's,
    a config's or a password; fields without a value are left out. From any thread; it waits for nothing.
    """
    audit_lines(asker, action, namespace=namespace)(outcome, [target], cause=cause, **numbers)


def audit_lines(asker: Asker, action: Action, *, namespace: str = "") -> Callable[..., None]:
    """What logs lines of one request, by the other arguments of :func:`audit`, for many targets at a time.

    All of them have a name, or none has.
    """
    log = _log.bind()
    who: dict[str, object] = {
        "role": asker.role,
        "principal": asker.original_principal,
        "address": asker.remote_address,
        "client_version": shown(asker.client_version),
        "transport": asker.transport,
        "namespace": shown(namespace),
    }

    def lines(
        outcome: Outcome, targets: Sequence[str] = ("",), *, cause: str = "", **numbers: int | str | None
    ) -> None:
        fields = {
            "action": action,
            "outcome": outcome,
            "cause": cause,
            **who,
            "target": shown(targets[0]),
            **numbers,
        }
        told = {name: value for name, value in fields.items() if value is not None and value != ""}
        if len(targets) == 1:
            log.info("audit", logger=AUDIT_LOGGER, **told)
        elif "target" in told:
            info_each(log, "audit", EachLine("target", shown_each(targets)), logger=AUDIT_LOGGER, **told)
        else:
            for _ in targets:
                log.info("audit", logger=AUDIT_LOGGER, **told)

    return lines
