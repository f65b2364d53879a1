"""`broker-core list`: lists a namespace's topics from a server, once or continuously."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from broker_core.cli.common_options import Invocation
from broker_core.cli.help_examples import examples
from broker_core.cli.options.credentials import GivenCredentials
from broker_core.cli.options.given_question import GivenQuestion, HashOption
from broker_core.cli.options.option_values import UnusableQuestion
from broker_core.cli.printed_topics import FEW, Form, print_topics, require_reader
from broker_core.errors import BrokerCoreError
from broker_core.service_addresses import HTTP_SCHEMES, PULSAR_SCHEMES, is_tls, service_addresses

if TYPE_CHECKING:
    import pyarrow as pa

    from broker_core.client import TopicListing
    from broker_core.names import NamespaceName
    from broker_core.quantities import ListenAddress
    from broker_core.settings import Settings

T = TypeVar("T")

#: Namespaces that are searched for one with a similar name, and seconds to wait for them.
_NAMESPACES: Final = 1000
_HINT_TIMEOUT: Final = 5.0

__all__ = ["EXAMPLES", "list_topics", "service_url"]

EXAMPLES: Final = examples(
    "broker-core list public/default",
    "broker-core list public/default --pattern 'public/default/orders-.*' --property region=eu",
    "broker-core list public/default --url pulsar://broker:6650 --mode all --format json",
    "broker-core list acme/shop --url http://broker:8080 --watch",
    "broker-core list acme/shop --url http://broker:8080 --detail partitions,properties --format csv",
    "broker-core list acme/shop --url pulsar+ssl://broker:6651 --token-file token.jwt --ca ca.pem",
)


def list_topics(
    invocation: Invocation,
    question: GivenQuestion,
    *,
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
        Form | None,
        typer.Option("--format", help="How to print the answer.", show_default="names; with --detail, table"),
    ] = None,
    details: Annotated[
        str | None,
        typer.Option(
            "--detail",
            metavar="WORDS",
            help="Show details of the topics too, with commas between: partitions, topic_id, properties. Over HTTP.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the answer.", min=0.001)
    ] = 30.0,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Keep running, and print + before new topics and - before removed ones."
        ),
    ] = False,
    period: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --watch, the time between questions.", min=0.1)
    ] = 10.0,
    confirmations: Annotated[
        int,
        typer.Option(
            metavar="N", help="With --watch, answers in a row without a topic until it counts as gone.", min=1
        ),
    ] = 2,
    credentials: GivenCredentials,
) -> None:
    """Ask a server for the topics of a namespace, as a consumer with a topics pattern does."""
    import asyncio

    from broker_core.cli.error_line import say

    if form is None:
        form = "names" if details is None else "table"
    require_reader(form)
    columns = () if details is None else _details(details, form, asks_again=watch or topics_hash is not None)
    where = (
        service_url(invocation.load().settings, tls=credentials.has_certificates, http=bool(columns))
        if url is None
        else _checked(url)
    )
    over_http = where.startswith(("http://", "https://"))
    if columns and not over_http:
        raise UnusableQuestion("--detail is asked over HTTP: give --url http://HOST:PORT")
    if not is_tls(where):
        credentials.refuse_certificates(where)
    if watch:
        if form not in ("names", "ndjson") or topics_hash is not None:
            raise UnusableQuestion("--watch goes with --format names or ndjson, and not with --hash")
        watching = _watch(
            where,
            question,
            credentials,
            timeout,
            period=period,
            confirmations=confirmations,
            form=form,
        )
        asyncio.run(_with_advice(credentials, watching))
        return
    listing, table = asyncio.run(
        _with_advice(
            credentials,
            _ask_over_http(where, question, credentials, timeout, topics_hash, columns)
            if over_http
            else _ask(where, question, credentials, timeout, topics_hash),
        )
    )
    matched_by = None if question.pattern is None else _matched_by(listing, over_http=over_http)
    print_topics(listing, form, question.shown, matched_by=matched_by, details=table)
    for warning in listing.warnings:
        say(f"warning: {warning}")
    if listing.changed and not (len(listing) or listing.warnings):
        api = _api_beside(where, invocation, given=url is not None)
        _say_if_unknown(question.namespace, api, timeout, credentials)
    if form == "names":
        if not listing.changed:
            say(f"unchanged: the topics still have the hash {listing.topics_hash}")
        elif question.pattern is not None and not (over_http or listing.filtered):
            say(
                "the server did not apply the pattern: these are all topics of the namespace, which clients filter"
            )


def _matched_by(listing: TopicListing, *, over_http: bool) -> str:
    """A note on what applied the pattern."""
    if over_http:
        return f"pattern applied by the {'server' if listing.filtered else 'client'}"
    return f"pattern {'applied' if listing.filtered else 'not applied'} by the server"


async def _ask(
    url: str,
    question: GivenQuestion,
    given: GivenCredentials,
    timeout: float,
    topics_hash: str | None,
) -> tuple[TopicListing, None]:
    """The answer of the server as it is, from one connection and one request without retries; no details."""
    from broker_core.client import LookupSession, TopicListing, TopicsQuestion

    fields = question.namespace, question.mode, question.pattern, topics_hash, question.properties
    async with LookupSession(
        url,
        operation_timeout=timeout,
        connect_timeout=min(timeout, 10.0),
        tls=given.tls(),
        credentials=given.of_client(),
    ) as session:
        answer = await session.get_topics(str(question.namespace), *fields[1:])
    listing = TopicListing(
        answer.topics if len(answer) <= FEW else answer.column(),
        filtered=answer.filtered,
        changed=answer.changed,
        topics_hash=answer.topics_hash,
        warnings=answer.warnings or (() if len(answer) else TopicsQuestion.of(*fields).warnings_of_none()),
    )
    return listing, None


async def _ask_over_http(
    url: str,
    question: GivenQuestion,
    given: GivenCredentials,
    timeout: float,
    topics_hash: str | None,
    columns: Sequence[str],
) -> tuple[TopicListing, pa.Table | None]:
    """The answer over HTTP, with the given details; names are filtered here if the server does not do it."""
    import asyncio

    from broker_core.client import (
        MAX_ANSWER,
        HttpService,
        OperationTimeout,
        TopicsQuestion,
        default_client_version,
    )

    topics_question = TopicsQuestion.of(
        question.namespace, question.mode, question.pattern, topics_hash, question.properties
    )
    service = HttpService(
        url,
        client_version=default_client_version(),
        credentials=given.of_client(),
        tls=given.tls(),
        connect_timeout=min(timeout, 10.0),
        max_answer=MAX_ANSWER,
    )
    try:
        async with asyncio.timeout(timeout):
            if columns:
                return await service.details(topics_question, columns)
            return await service.topics(topics_question), None
    except TimeoutError:
        raise OperationTimeout(f"{url} did not answer within {timeout:g} s") from None
    finally:
        await service.close()


async def _watch(
    url: str, question: GivenQuestion, given: GivenCredentials, timeout: float, **options: Any
) -> None:
    import warnings

    from broker_core.cli.error_line import say
    from broker_core.cli.server_process.server_log import silence_logs
    from broker_core.cli.watched_topics import watch_topics
    from broker_core.client import ListingWarning, LookupClient

    def shown(message: Warning | str, *_: Any, **__: Any) -> None:
        say(f"warning: {message}")

    silence_logs()  # the watch says what goes wrong
    with warnings.catch_warnings():
        warnings.simplefilter("default", ListingWarning)
        warnings.showwarning = shown
        async with LookupClient(
            url,
            auth=given.of_client(),
            tls=given.tls(),
            operation_timeout=timeout,
            connect_timeout=min(timeout, 10.0),
        ) as client:
            await watch_topics(client, question, **options)


async def _with_advice(given: GivenCredentials, asking: Awaitable[T]) -> T:
    """The result of ``asking``; its errors get advice on what may help."""
    from broker_core.client import ConnectionLost, HandshakeRefused, TlsFailed
    from broker_core.errors import ServerError

    try:
        return await asking
    except HandshakeRefused as refused:
        if refused.code is not ServerError.AuthenticationError:
            raise
        raise BrokerCoreError(f"{refused}; {given.after_refusal}") from None
    except TlsFailed as failed:
        advice = given.after_distrust(str(failed))
        if advice is None:
            raise
        raise BrokerCoreError(f"{failed}; {advice}") from None
    except ConnectionLost as lost:
        if not str(lost).endswith(os.strerror(errno.ECONNREFUSED)):
            raise
        from broker_core.cli.running_broker import IS_IT_RUNNING

        raise BrokerCoreError(f"{lost}; {IS_IT_RUNNING}") from None


def _checked(url: str) -> str:
    try:
        service_addresses(url, PULSAR_SCHEMES | HTTP_SCHEMES)
    except ValueError as wrong:
        raise UnusableQuestion(str(wrong)) from None
    return url


def _details(text: str, form: Form, *, asks_again: bool) -> list[str]:
    """The words of ``--detail``, each once. Raises :exc:`UnusableQuestion`."""
    known = ("partitions", "topic_id", "properties")
    words = list(dict.fromkeys(word.strip() for word in text.split(",")))
    if unknown := [word for word in words if word not in known]:
        raise UnusableQuestion(f"--detail {unknown[0]!r:.100}: one or more of {', '.join(known)}")
    if form == "names" or asks_again:
        raise UnusableQuestion(
            "--detail goes with --format table, json, ndjson, csv or arrow, and not with --watch or --hash"
        )
    return words


def service_url(settings: Settings, *, tls: bool = False, http: bool = False) -> str:
    """The service URL of a server with these settings from this machine; ``tls`` prefers TLS.

    Over TLS the host is ``pulsar.tls.advertised``, if set, since the certificate is for it. With ``http`` it is the
    address of the HTTP server.
    """
    if http:
        return _http_url(settings, tls=tls)
    name, scheme, listen = "pulsar.listen", "pulsar", settings.pulsar.listen
    host = listen.from_here.host
    table = settings.pulsar.tls
    if tls and table is not None:
        name, scheme, listen = "pulsar.tls.listen", "pulsar+ssl", table.listen
        host = table.advertised or listen.from_here.host
    return _url(name, scheme, replace(listen, host=host))


def _http_url(settings: Settings, *, tls: bool) -> str:
    table = settings.http
    if table is None:
        raise BrokerCoreError(
            "--detail is asked over HTTP, and the settings have no [http]: give --url http://HOST:PORT"
        )
    if tls and table.tls is not None:
        return _url("http.tls.listen", "https", table.tls.listen.from_here)
    return _url("http.listen", "http", table.listen.from_here)


def _url(name: str, scheme: str, address: ListenAddress) -> str:
    if address.port == 0:
        raise BrokerCoreError(
            f"{name} is a free port (0), so the settings do not say which: take it from the line "
            "`ready` of the server and give it as --url"
        )
    return f"{scheme}://{address}"


def _api_beside(where: str, invocation: Invocation, *, given: bool) -> str | None:
    """The base URL of `/v1` of the server at ``where``, for the same credentials; ``None`` if it is not known."""
    if where.startswith(("http://", "https://")):
        return where
    if given:
        return None
    try:
        url = _http_url(invocation.load().settings, tls=is_tls(where))
    except BrokerCoreError:  # it has none, or at a port that nobody knows
        return None
    return url if is_tls(url) == is_tls(where) else None  # no token is sent in clear beside one that was not


def _say_if_unknown(
    namespace: NamespaceName, api: str | None, timeout: float, credentials: GivenCredentials
) -> None:
    """Print a note if the server does not show this namespace to the user, with similar ones.

    The server decides by the user's rights which namespaces it shows; nothing is printed if it does not answer, or does
    not know all namespaces.
    """
    import difflib

    from broker_core.cli.error_line import say

    if api is None:
        return
    name = str(namespace)
    known = _shown_namespaces(api, name, timeout, credentials)
    if known is None or name in known:
        return
    near: list[str] = []
    for prefix in (f"{namespace.tenant}/", namespace.tenant[:1]):
        near = near or difflib.get_close_matches(
            name, _shown_namespaces(api, prefix, timeout, credentials) or (), 1
        )
    meant = f"; did you mean {near[0]}?" if near else ""
    say(f"{name} is not among the namespaces with topics that the server shows{meant}")


def _shown_namespaces(
    api: str, prefix: str, timeout: float, credentials: GivenCredentials
) -> list[str] | None:
    """The first namespaces with a prefix, in the order of names; ``None`` if the server gives none, or not all."""
    import json
    from urllib.parse import quote

    from broker_core.cli.running_broker import BrokerUnreachable, get

    path = f"/v1/namespaces?limit={_NAMESPACES}&prefix={quote(prefix, safe='')}"
    try:
        page = json.loads(get(api, path, timeout=min(timeout, _HINT_TIMEOUT), credentials=credentials))
        return [str(item["namespace"]) for item in page["items"]] if page.get("complete", True) else None
    except (BrokerUnreachable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
