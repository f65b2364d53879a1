"""ACLs of Kafka in few words, and their rows in the catalogue, for tests."""

from __future__ import annotations

from broker_core.catalog import AclRow, SqliteCatalog
from broker_core.kafka.acls.bindings import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from broker_core.names import NamespaceName
from broker_core.servers.kafka.callers.authorizer import Authorizer
from broker_core.settings import KafkaSettings

__all__ = ["AllowAll", "acl", "cluster_acl", "put_acls"]


class AllowAll(Authorizer):
    """Allows everything, whether it is ``enabled`` or not: for tests that forbid something of it."""

    enabled = False

    def __init__(self) -> None:
        super().__init__(KafkaSettings(allow_everyone_if_no_acl_found=True))


def acl(
    name: str,
    operation: str,
    principal: str = "User:ann",
    *,
    prefix: bool = False,
    deny: bool = False,
    host: str = "*",
    kind: ResourceType = ResourceType.TOPIC,
) -> AclRow:
    """An ACL of a topic."""
    pattern = PatternType.PREFIXED if prefix else PatternType.LITERAL
    permission = Permission.DENY if deny else Permission.ALLOW
    return AclRow(kind, name, pattern, principal, host, Operation[operation], permission)


def cluster_acl(operation: str, principal: str = "User:ann", *, deny: bool = False) -> AclRow:
    """An ACL of the cluster."""
    return acl(CLUSTER_NAME, operation, principal, deny=deny, kind=ResourceType.CLUSTER)


def put_acls(catalog: SqliteCatalog, *rows: AclRow, namespace: str = "public/default") -> None:
    """Store these ACLs in the place of those that a namespace has."""
    name = NamespaceName.parse(namespace)
    catalog.change_kafka_acls(name, add=rows, remove=catalog.kafka_acls(name)[1])
