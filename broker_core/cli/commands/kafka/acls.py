"""`broker-core kafka acls ...`: access control lists, of a namespace in the catalogue or of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.open_catalog import opened_catalog, written_catalog
from broker_core.cli.options.kafka_acls import (
    ClusterOption,
    GivenBindings,
    GroupOption,
    PatternFilterOption,
    PrincipalOption,
    TopicOption,
    TransactionOption,
    given_filters,
    given_resources,
)
from broker_core.cli.options.kafka_server import GivenKafka
from broker_core.cli.options.option_values import UnusableQuestion, parse_namespace
from broker_core.cli.options.topics import CatalogOption
from broker_core.cli.printed_output import print_json, print_lines
from broker_core.cli.printed_results import print_results
from broker_core.errors import BrokerCoreError
from broker_core.kafka.acls import binding_text

if TYPE_CHECKING:
    from broker_core.catalog import AclRow, SqliteCatalog
    from broker_core.kafka.acls import AclBinding, AclFilter
    from broker_core.names import NamespaceName

__all__ = ["EXAMPLES", "AclMissing", "add_acls", "list_acls", "remove_acls"]

EXAMPLES: Final = examples(
    "broker-core kafka acls add acme/orders --allow-principal User:orders-app --operation Describe --topic '*'",
    "broker-core kafka acls list acme/orders",
    "# all ACLs about the topic public-a, with those of prefixes and of '*'",
    "broker-core kafka acls list acme/orders --topic public-a --resource-pattern-type match",
    "# the ACLs of a Kafka server",
    "broker-core kafka acls list --bootstrap kafka:9092",
    "broker-core kafka acls remove acme/orders --allow-principal User:orders-app --operation Describe --topic '*'",
)

NamespaceArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAMESPACE]",
        help="tenant/namespace, in the catalogue; not with --bootstrap.",
        show_default=False,
    ),
]


class AclMissing(BrokerCoreError):
    """There is no such binding in the namespace."""


def add_acls(
    invocation: Invocation,
    namespace: NamespaceArgument = None,
    *,
    given: GivenBindings,
    catalog: CatalogOption = None,
    server: GivenKafka,
) -> None:
    """Allow or deny operations to principals in a namespace.

    Every combination of the options is one binding.
    """
    from broker_core.cli.error_line import say
    from broker_core.cli.printed_output import print_lines
    from broker_core.kafka.acls import binding_text

    of = _namespace(namespace, server)
    bindings = given.meaningful_bindings()
    if of is None:
        _add_at_server(invocation, server, bindings)
        return
    with written_catalog(invocation, catalog, create=True) as opened:
        had_any = opened.has_kafka_acls()
        opened.change_kafka_acls(of, add=[_row(each) for each in bindings])
        print_lines(binding_text(each) for each in bindings)
        if not had_any:
            say(
                "from now on Kafka clients may do what an ACL or kafka.super_users allows them, and nothing else"
            )


def list_acls(
    invocation: Invocation,
    namespace: NamespaceArgument = None,
    *,
    principal: PrincipalOption = None,
    topic: TopicOption = None,
    group: GroupOption = None,
    transactional_id: TransactionOption = None,
    cluster: ClusterOption = False,
    resource_pattern_type: PatternFilterOption = "any",
    form: Annotated[Literal["lines", "json"], typer.Option("--format", help="How to print them.")] = "lines",
    catalog: CatalogOption = None,
    server: GivenKafka,
) -> None:
    """List the access control lists of a namespace.

    All of them, or those of the principals and resources named.
    """
    of = _namespace(namespace, server)
    resources = given_resources(topic, group, transactional_id, cluster=cluster)
    filters = given_filters(principal, resources, resource_pattern_type)
    if of is None:
        _print_bindings(_bindings_of_server(invocation, server, filters), form)
        return
    with opened_catalog(invocation, catalog) as opened:
        found = [each for each in _stored(opened, of) if any(one.matches(each) for one in filters)]
    _print_bindings(found, form)


def remove_acls(
    invocation: Invocation,
    namespace: NamespaceArgument = None,
    *,
    given: GivenBindings,
    catalog: CatalogOption = None,
    server: GivenKafka,
) -> None:
    """Remove access control lists of a namespace.

    The bindings that `add` has made of the same options: of the catalogue all of them, or none if one is not there;
    with --bootstrap those that the server has.
    """
    from broker_core.cli.error_line import say
    from broker_core.cli.printed_output import print_lines
    from broker_core.kafka.acls import binding_text

    of = _namespace(namespace, server)
    bindings = given.bindings()
    if of is None:
        _remove_at_server(invocation, server, bindings)
        return
    with written_catalog(invocation, catalog) as opened:
        stored = set(_stored(opened, of))
        for each in bindings:
            if each not in stored:
                raise AclMissing(f"There is no binding in {of}: {binding_text(each)}")
        opened.change_kafka_acls(of, remove=[_row(each) for each in bindings])
        print_lines(f"removed {binding_text(each)}" for each in bindings)
        if not opened.has_kafka_acls():
            say(f"no ACL is left in any namespace: {_without_acls(invocation)}")


def _without_acls(invocation: Invocation) -> str:
    """A sentence on what Kafka clients may do from now on, by the settings in force."""
    from broker_core.cli.startup_checks.kafka_acls import all_without_acls

    settings = invocation.load().settings
    kafka, everything = settings.kafka, all_without_acls(settings)
    if kafka is None:
        return "Kafka clients of a server may do everything, unless kafka.super_users names a user"
    if kafka.allow_everyone_if_no_acl_found:
        return f"from now on Kafka clients may do {everything}, as kafka.allow_everyone_if_no_acl_found says"
    if kafka.super_users:
        return "from now on kafka.super_users alone may do anything"
    return f"from now on Kafka clients may do {everything}, since kafka.super_users is empty"


def _namespace(namespace: str | None, server: GivenKafka) -> NamespaceName | None:
    """The namespace in the catalogue; ``None`` for a server, which has one namespace."""
    if (namespace is None) is (server.bootstrap is None):
        raise UnusableQuestion("name the namespace in the catalogue, or give --bootstrap: one of the two")
    return None if namespace is None else parse_namespace(namespace)


def _row(binding: AclBinding) -> AclRow:
    from broker_core.catalog import AclRow

    kind, name, pattern, principal, host, operation, permission = binding
    return AclRow(int(kind), name, int(pattern), principal, host, int(operation), int(permission))


def _stored(catalog: SqliteCatalog, namespace: NamespaceName) -> list[AclBinding]:
    from broker_core.kafka.acls import binding_of

    return [binding_of(row) for row in catalog.kafka_acls(namespace)[1]]


def _add_at_server(invocation: Invocation, server: GivenKafka, bindings: Sequence[AclBinding]) -> None:
    """Add bindings, each by itself."""

    async def add() -> None:
        async with server.connected(invocation) as client:
            results = await client.create_acls(bindings)
        print_results(results, binding_text, binding_text)

    asyncio.run(add())


def _bindings_of_server(
    invocation: Invocation, server: GivenKafka, filters: Sequence[AclFilter]
) -> list[AclBinding]:
    """The bindings that any filter finds, each once, in order."""

    async def found() -> set[AclBinding]:
        async with server.connected(invocation) as client:
            return {each for one in filters for each in await client.describe_acls(one)}

    return sorted(asyncio.run(found()))


def _print_bindings(bindings: Sequence[AclBinding], form: Literal["lines", "json"]) -> None:
    """Print bindings, one a line, or as JSON: a list of objects with Kafka's words."""
    if form == "lines":
        print_lines(binding_text(each) for each in bindings)
        return
    print_json(
        [
            {
                key: value.name if isinstance(value, IntEnum) else value
                for key, value in each._asdict().items()
            }
            for each in bindings
        ]
    )


def _remove_at_server(invocation: Invocation, server: GivenKafka, bindings: Sequence[AclBinding]) -> None:
    """Remove bindings. A missing one is an error, and the others are removed all the same."""
    from broker_core.client.kafka import AclFilter

    async def remove() -> None:
        async with server.connected(invocation) as client:
            by_filter = await client.delete_acls(AclFilter(*each) for each in bindings)
        results = {each: by_filter[AclFilter(*each)] for each in bindings}
        for removed in results.values():
            print_results(removed, lambda each: f"removed {binding_text(each)}", binding_text)
        missing = [binding_text(each) for each, removed in results.items() if not removed]
        if missing:
            raise BrokerCoreError(f"There is no binding: {'; '.join(missing)}")

    asyncio.run(remove())
