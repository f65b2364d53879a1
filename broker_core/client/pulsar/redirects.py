"""Following the redirects of a lookup to the broker that serves the topic.

docs/reference/pulsar-behaviour.md#lookups
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from broker_core.client.client_errors import InvalidServiceUrl, UnexpectedAnswer
from broker_core.client.pulsar.service_url import ServiceUrl
from broker_core.wire.pulsar import BaseCommand, CommandLookupTopicResponse

__all__ = ["MAX_REDIRECTS", "SendLookup", "broker_url", "follow_redirects"]

#: The most redirects of one lookup: as many as Pulsar's clients follow.
MAX_REDIRECTS: Final = 20

#: Sends the LOOKUP to the service URL, or to the broker at an address (a service URL) with ``authoritative`` as given.
SendLookup: TypeAlias = Callable[[str | None, bool | None], Awaitable[BaseCommand]]


async def follow_redirects(
    send: SendLookup, *, is_tls: bool, redirected: Callable[[], None] = lambda: None
) -> BaseCommand:
    """The answer to LOOKUP that names the broker, or refuses; ``redirected`` is called for each followed redirect.
    ``send`` is called for the service URL first, with ``None`` for ``authoritative``.

    Raises what ``send`` raises, and :exc:`~broker_core.client.UnexpectedAnswer` for a redirect that cannot be
    followed.
    """
    address: str | None = None
    authoritative: bool | None = None
    seen: set[tuple[str, bool]] = set()
    for _ in range(MAX_REDIRECTS + 1):
        answer = await send(address, authoritative)
        body = answer.lookupTopicResponse
        if body.response != CommandLookupTopicResponse.Redirect or body.HasField("error"):
            return answer
        address, authoritative = broker_url(body, is_tls=is_tls), body.authoritative
        if (address, body.authoritative) in seen:
            raise UnexpectedAnswer(f"they redirect in a circle, to {address} again")
        seen.add((address, body.authoritative))
        redirected()
    raise UnexpectedAnswer(f"they redirect more than {MAX_REDIRECTS} times, to {address} in the end")


def broker_url(body: Any, *, is_tls: bool) -> str:
    """The address in an answer to LOOKUP: if the service is asked by TLS, the one for TLS, never another."""
    named: str = body.brokerServiceUrlTls if is_tls else body.brokerServiceUrl
    kind = "a TLS address" if is_tls else "an address without TLS"
    if not named:
        raise UnexpectedAnswer(f"they answered without the address of a broker: {kind} is needed")
    try:
        found = ServiceUrl.parse(named)
        for host, _ in found.addresses:
            host.encode("idna")  # as it is looked up
    except (InvalidServiceUrl, UnicodeError) as invalid:
        raise UnexpectedAnswer(f"they name a broker by an address that is none: {invalid!s:.200}") from None
    if found.is_tls != is_tls or len(found.addresses) != 1:
        raise UnexpectedAnswer(f"they name a broker by {named!r:.200}: {kind} is needed")
    return named
