"""Options of `broker-core kafka acls ...`, as in Kafka's own command: principals, operations, resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from broker_core.cli.options.option_values import UnusableQuestion

if TYPE_CHECKING:
    from broker_core.kafka.acls import AclBinding, AclFilter, Operation, PatternType, ResourceType

__all__ = [
    "ClusterOption",
    "GivenBindings",
    "GroupOption",
    "PatternFilterOption",
    "PrincipalOption",
    "TopicOption",
    "TransactionOption",
    "given_filters",
    "given_operations",
    "given_pattern",
    "given_resources",
]

TopicOption = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="NAME", help="A topic; '*' is every one.", show_default=False),
]
GroupOption = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", help="A consumer group.", show_default=False)
]
TransactionOption = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="NAME", help="A transactional id.", show_default=False),
]
ClusterOption = Annotated[bool, typer.Option("--cluster", help="The cluster itself.", show_default=False)]
PrincipalOption = Annotated[
    list[str] | None,
    typer.Option("--principal", metavar="User:NAME", help="Only ACLs of this principal.", show_default=False),
]
PatternFilterOption = Annotated[
    Literal["any", "match", "literal", "prefixed"],
    typer.Option(
        "--resource-pattern-type",
        help="literal or prefixed: only ACLs of this type. match: all ACLs that are about the resource.",
    ),
]


def given_resources(
    topics: Sequence[str] | None,
    groups: Sequence[str] | None,
    transactions: Sequence[str] | None,
    *,
    cluster: bool,
) -> list[tuple[ResourceType, str]]:
    """The resources that options name."""
    from broker_core.kafka.acls import CLUSTER_NAME, ResourceType

    return [
        *((ResourceType.TOPIC, name) for name in topics or ()),
        *((ResourceType.GROUP, name) for name in groups or ()),
        *((ResourceType.TRANSACTIONAL_ID, name) for name in transactions or ()),
        *([(ResourceType.CLUSTER, CLUSTER_NAME)] if cluster else []),
    ]


def given_filters(
    principals: Sequence[str] | None,
    resources: Sequence[tuple[ResourceType, str]],
    pattern: Literal["any", "match", "literal", "prefixed"],
) -> list[AclFilter]:
    """A filter for each combination of a principal and a resource; without either, one that finds all bindings."""
    from broker_core.kafka.acls import AclFilter, PatternType, ResourceType

    return [
        AclFilter(kind, name, PatternType[pattern.upper()], principal)
        for (kind, name), principal in product(
            resources or ((ResourceType.ANY, None),), principals or (None,)
        )
    ]


def given_operations(words: Sequence[str] | None) -> list[Operation]:
    """Operations by Kafka's names in any case; none is all. Raises :exc:`UnusableQuestion`."""
    from broker_core.kafka.acls import Operation

    names = {member.name.replace("_", "").lower(): member for member in Operation if member > Operation.ANY}
    found = []
    for word in words or ("All",):
        member = names.get(word.replace("_", "").replace("-", "").lower())
        if member is None:
            known = ", ".join(member.name.title().replace("_", "") for member in names.values())
            raise UnusableQuestion(f"--operation {word!r}: expected one of {known}")
        found.append(member)
    return found


def given_pattern(word: str) -> PatternType:
    """``literal`` or ``prefixed``; raises :exc:`UnusableQuestion`."""
    from broker_core.kafka.acls import PatternType

    found = {"literal": PatternType.LITERAL, "prefixed": PatternType.PREFIXED}.get(word.lower())
    if found is None:
        raise UnusableQuestion(f"--resource-pattern-type {word!r}: expected literal or prefixed")
    return found


@dataclass(frozen=True, slots=True)
class GivenBindings:
    """The options of a command that adds or removes bindings: every combination of them is one binding."""

    allow_principal: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-principal",
            metavar="User:NAME",
            help="A principal that is allowed; User:* is every one.",
            show_default=False,
        ),
    ] = None
    deny_principal: Annotated[
        list[str] | None,
        typer.Option(
            "--deny-principal",
            metavar="User:NAME",
            help="A principal that is denied, whatever else allows it.",
            show_default=False,
        ),
    ] = None
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Only from this IP address; by default from any.",
            show_default=False,
        ),
    ] = None
    operation: Annotated[
        list[str] | None,
        typer.Option(
            "--operation",
            metavar="OPERATION",
            help="An operation, such as Describe or AlterConfigs; without it, all.",
            show_default=False,
        ),
    ] = None
    topic: TopicOption = None
    group: GroupOption = None
    transactional_id: TransactionOption = None
    cluster: ClusterOption = False
    resource_pattern_type: Annotated[
        str,
        typer.Option(
            "--resource-pattern-type",
            metavar="literal|prefixed",
            help="prefixed: all names that begin with the given one.",
        ),
    ] = "literal"

    def bindings(self) -> list[AclBinding]:
        """A binding for every combination of the options; raises :exc:`UnusableQuestion` for an invalid one."""
        from broker_core.kafka.acls import (
            AclBinding,
            PatternType,
            Permission,
            ResourceType,
            binding_fault,
            principal_fault,
        )

        operations, pattern = given_operations(self.operation), given_pattern(self.resource_pattern_type)
        resources = given_resources(self.topic, self.group, self.transactional_id, cluster=self.cluster)
        principals = [
            *((Permission.ALLOW, each) for each in self.allow_principal or ()),
            *((Permission.DENY, each) for each in self.deny_principal or ()),
        ]
        if not principals:
            raise UnusableQuestion("no principal is named: give --allow-principal or --deny-principal")
        if not resources:
            raise UnusableQuestion(
                "no resource is named: say --topic, --group, --transactional-id or --cluster"
            )
        found = []
        for (permission, principal), host, operation, (kind, name) in product(
            principals, self.host or ("*",), operations, resources
        ):
            of = PatternType.LITERAL if kind is ResourceType.CLUSTER else pattern
            binding = AclBinding(kind, name, of, principal, host, operation, permission)
            fault = principal_fault(principal) or binding_fault(binding)
            if fault is not None:
                raise UnusableQuestion(fault)
            found.append(binding)
        return found

    def meaningful_bindings(self) -> list[AclBinding]:
        """The bindings to add; raises :exc:`UnusableQuestion` as :meth:`bindings` does, for an operation that the type
        of resource does not have, and for an invalid topic.

        A server accepts such bindings from any client.
        """
        from broker_core.kafka import is_legal
        from broker_core.kafka.acls import mistake_in

        bindings = self.bindings()
        is_prefixed = self.resource_pattern_type == "prefixed"
        for name in self.topic or ():
            if not (is_legal(f"{name}x" if is_prefixed else name) or name == "*"):
                raise UnusableQuestion(
                    f"--topic {name!r}: no topic of Kafka can have this name, which is the one without its namespace; "
                    "all that begin with a text are meant with --resource-pattern-type prefixed, without a '*'"
                )
        for each in bindings:
            mistake = mistake_in(each)
            if mistake is not None:
                raise UnusableQuestion(f"--operation {each.operation.name}: {mistake}")
        return bindings
