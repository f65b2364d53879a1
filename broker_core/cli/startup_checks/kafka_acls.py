"""Kafka's ACLs in the catalogue: whether they apply to any client, and which have no effect."""

from __future__ import annotations

import ipaddress
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_core.cli.startup_checks.catalog_file import opened_to_read
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import KafkaSettings, Settings

__all__ = ["all_without_acls", "kafka_acl_checks"]

_NAME: Final = "kafka.acls"
#: Different hosts, namespaces and principals that are named in one finding.
_NAMED: Final = 5
_ANYBODY: Final = ("User:*", "User:ANONYMOUS")


def kafka_acl_checks(settings: Settings) -> Iterator[Check]:
    """Findings about the stored ACLs. The checks of the catalogue report a file that cannot be read."""
    kafka = settings.kafka
    rows = [] if settings.upstream is not None else _stored(settings.catalog.path)
    if kafka is None:
        if rows:
            yield Check.warning(_NAME, f"{_acls(len(rows))} without effect: there is no table [kafka]")
        return
    if kafka.upstream is not None:
        if rows:
            yield Check.warning(_NAME, f"{_acls(len(rows))} without effect: the cluster has its own")
        return
    configured = bool(kafka.super_users or kafka.allow_everyone_if_no_acl_found)
    if not rows and not configured:
        yield Check.ok(_NAME, "none is stored, and nothing is denied for want of one")
        return
    yield Check.ok(_NAME, f"{_acls(len(rows))}; {_otherwise(kafka)}")
    yield from _denied_by_rules(settings, kafka)
    if not configured:
        yield Check.warning(
            _NAME,
            f"once the last ACL is deleted, everybody may do {all_without_acls(settings)}: kafka.super_users is empty",
        )
    yield from _without_effect(settings, kafka, rows)


def all_without_acls(settings: Settings) -> str:
    """Rights of Kafka clients to which no ACL applies: the rules of all transports apply to them all the same."""
    from broker_core.access import Authorization

    if settings.authorization.mode == "allow":
        return "everything"
    rules = Authorization(settings.authorization, authentication=settings.authentication.is_on)
    return "all that [authorization] allows them" if rules.on else "everything"


def _denied_by_rules(settings: Settings, kafka: KafkaSettings) -> Iterator[Check]:
    """Findings about super users without any right: ACLs do not apply to them, but the rules of all transports do."""
    from broker_core.access import Authorization

    authorization = Authorization(settings.authorization, authentication=settings.authentication.is_on)
    for principal in sorted(set(kafka.super_users) - set(_ANYBODY)):
        role = principal.removeprefix("User:")
        namespace = str(kafka.namespaces.get(principal, kafka.namespace))
        if not authorization.decide(role, "admin", namespace).allowed:
            yield Check.warning(
                "kafka.super_users",
                f"{principal} has no right to admin in namespace {namespace}: "
                "name its role in authorization.super_roles, or write a rule for it",
            )


def _without_effect(settings: Settings, kafka: KafkaSettings, rows: list[_Row]) -> Iterator[Check]:
    served = {kafka.namespace, *kafka.namespaces.values()}
    elsewhere = Counter(namespace for namespace, _, _ in rows if namespace not in served)
    if elsewhere:
        yield _idle(elsewhere, "no Kafka client asks in", "see kafka.namespace and [kafka.namespaces]")
    apart = Counter(
        principal
        for namespace, principal, _ in rows
        if namespace in served
        and principal not in (*_ANYBODY, *kafka.super_users)
        and namespace != kafka.namespaces.get(principal, kafka.namespace)
    )
    if apart:
        yield _idle(apart, "they are not in the namespace of", "see [kafka.namespaces]")
    free = Counter(principal for _, principal, _ in rows if principal in kafka.super_users)
    if free:
        yield _idle(free, "no ACL binds", "they are kafka.super_users")
    nobody = Counter(host for _, _, host in rows if not _is_address(host))
    if nobody:
        yield _idle(nobody, "no client has the host", "write an address, or *")
    if _knows_clients(settings, kafka):
        return
    others = Counter(principal for _, principal, _ in rows if principal not in _ANYBODY)
    unknown = sorted(set(kafka.super_users) - set(_ANYBODY))
    if others:
        yield _idle(
            others, "no client is", "without kafka.sasl.mechanisms and certificates all are User:ANONYMOUS"
        )
    if unknown:
        yield Check.warning(
            "kafka.super_users",
            f"no client is {', '.join(unknown[:_NAMED])}: "
            "without kafka.sasl.mechanisms and certificates all are User:ANONYMOUS",
        )


#: Namespace, principal and host of an ACL.
_Row = tuple[str, str, str]


def _stored(path: Path) -> list[_Row]:
    """All ACLs; none if there is no catalogue, or one of an earlier format."""
    try:
        with opened_to_read(Path(os.path.abspath(path))) as connection:  # noqa: PTH100 - without its ".."
            return connection.execute("SELECT namespace, principal, host FROM kafka_acls").fetchall()
    except sqlite3.Error:
        return []


def _otherwise(kafka: KafkaSettings) -> str:
    if kafka.allow_everyone_if_no_acl_found:
        return "what none of them is about is allowed"
    return "what none of them allows is denied"


def _idle(found: Counter[str], what: str, remedy: str) -> Check:
    names = ", ".join(sorted(found)[:_NAMED]) + (", ..." if len(found) > _NAMED else "")
    return Check.warning(_NAME, f"{_acls(found.total())} without effect: {what} {names}; {remedy}")


def _acls(count: int) -> str:
    return "1 ACL is stored" if count == 1 else f"{count} ACLs are stored"


def _is_address(host: str) -> bool:
    try:
        return host == "*" or bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def _knows_clients(settings: Settings, kafka: KafkaSettings) -> bool:
    """Whether clients can have another name than ``ANONYMOUS``."""
    return bool(kafka.sasl.mechanisms or kafka.tls is not None or settings.authentication.anonymous_role)
