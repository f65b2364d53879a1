"""`broker-core list`: ask a server for the topics of a namespace, over Pulsar's protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.credentials import GivenCredentials
from broker_core.cli.options.question import (
    HashOption,
    ModeOption,
    NamespaceArgument,
    PatternOption,
    PropertyOption,
    parse_mode,
    parse_namespace,
    parse_properties,
    usable,
)
from broker_core.errors import BrokerCoreError

if TYPE_CHECKING:
    from broker_core.client import TopicsAnswer
    from broker_core.names import Mode, NamespaceName
    from broker_core.settings import Settings

__all__ = ["EXAMPLES", "list_topics", "service_url"]

EXAMPLES: Final = examples(
    "broker-core list public/default",
    "broker-core list public/default --pattern 'public/default/orders-.*' --property region=eu",
    "broker-core list public/default --url pulsar://broker:6650 --mode all --format json",
    "broker-core list acme/shop --url pulsar+ssl://broker:6651 --token-file token.jwt --ca ca.pem",
)


def list_topics(
    invocation: Invocation,
    namespace: NamespaceArgument,
    *,
    pattern: PatternOption = None,
    mode: ModeOption = "persistent",
    properties: PropertyOption = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The service URL to ask, instead of the server of the settings.",
            show_default=False,
        ),
    ] = None,
    topics_hash: HashOption = None,
    form: Annotated[
        Literal["names", "json", "table"], typer.Option("--format", help="How to print the answer.")
    ] = "names",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the answer.", min=0.001)
    ] = 30.0,
    credentials: GivenCredentials,
) -> None:
    """Ask a server for the topics of a namespace, as a consumer with a topics pattern does."""
    import asyncio

    asked = parse_namespace(namespace), parse_mode(mode)
    given = parse_properties(properties)
    where = (
        service_url(invocation.load().settings, tls=credentials.has_certificates)
        if url is None
        else _checked(url)
    )
    answer = asyncio.run(
        _ask(
            where,
            *asked,
            pattern=pattern,
            topics_hash=topics_hash,
            properties=given,
            timeout=timeout,
            given=credentials,
        )
    )
    _print(answer, *asked, form, pattern)


async def _ask(
    url: str,
    namespace: NamespaceName,
    mode: Mode,
    *,
    pattern: str | None,
    topics_hash: str | None,
    properties: dict[str, str],
    timeout: float,
    given: GivenCredentials,
) -> TopicsAnswer:
    from broker_core.client import HandshakeRefused, LookupSession, TlsFailed
    from broker_core.errors import ServerError

    if not url.startswith("pulsar+ssl:"):
        given.refuse_certificates(url)
    try:
        async with LookupSession(
            url,
            operation_timeout=timeout,
            connect_timeout=min(timeout, 10.0),
            tls=given.tls(),
            credentials=given.of_client(),
        ) as client:
            return await client.get_topics(str(namespace), mode, pattern, topics_hash, properties)
    except HandshakeRefused as refused:
        if refused.code is not ServerError.AuthenticationError:
            raise
        raise BrokerCoreError(f"{refused}; {given.after_refusal}") from None
    except TlsFailed as failed:
        advice = given.after_distrust(str(failed))
        if advice is None:
            raise
        raise BrokerCoreError(f"{failed}; {advice}") from None


def _checked(url: str) -> str:
    from broker_core.client import ServiceUrl

    with usable():
        return str(ServiceUrl.parse(url))


def service_url(settings: Settings, *, tls: bool = False) -> str:
    """Where a server with these settings is reached from this machine; with ``tls`` rather over TLS.

    Over TLS it is ``pulsar.tls.advertised``, if there is one: the certificate is for that host.
    """
    name, scheme, listen = "pulsar.listen", "pulsar", settings.pulsar.listen
    host = listen.from_here.host
    table = settings.pulsar.tls
    if tls and table is not None:
        name, scheme, listen = "pulsar.tls.listen", "pulsar+ssl", table.listen
        host = table.advertised or listen.from_here.host
    if listen.port == 0:
        raise BrokerCoreError(
            f"{name} is a free port (0), so the settings do not say which: take it from the line "
            "`ready` of the server and give it as --url"
        )
    return f"{scheme}://{replace(listen, host=host)}"


def _print(
    answer: TopicsAnswer, namespace: NamespaceName, mode: Mode, form: str, pattern: str | None
) -> None:
    from broker_core.cli.printed_output import print_json, print_lines, print_table

    if form == "json":
        print_json(
            {
                "namespace": str(namespace),
                "mode": mode.name,
                "topics": answer.topics,
                "topics_hash": answer.topics_hash,
                "filtered": answer.filtered,
                "changed": answer.changed,
            }
        )
        return
    if form == "table":
        print_table(["topic"], ([name] for name in answer.topics), caption=", ".join(_facts(answer, pattern)))
        return
    print_lines(answer.topics)
    note = None
    if not answer.changed:
        note = f"unchanged: the topics still have the hash {answer.topics_hash}"
    elif pattern is not None and not answer.filtered:
        note = "the server did not apply the pattern: these are all topics of the namespace, which clients filter"
    if note is not None:
        from broker_core.cli.error_line import say

        say(note)


def _facts(answer: TopicsAnswer, pattern: str | None) -> list[str]:
    facts = [
        f"{len(answer)} topics" if answer.changed else "unchanged",
        f"hash {answer.topics_hash}" if answer.topics_hash else "no hash",
    ]
    if pattern is not None:
        facts.append(f"pattern {'applied' if answer.filtered else 'not applied'} by the server")
    return facts
