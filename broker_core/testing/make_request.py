"""A question as a plugin gets it, for tests that call a hook as the function it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from broker_core.access import Asker
from broker_core.cli.options.option_values import UnusableQuestion, parse_address
from broker_core.listing import Page
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.plugin_api import ListingRequest

__all__ = ["address_of", "listing_request", "mode_of"]


def mode_of(mode: Mode | str) -> Mode:
    """A mode, or its word: ``"persistent"``, ``"non-persistent"`` or ``"all"``."""
    return Mode.parse(mode) if isinstance(mode, str) else mode


def address_of(address: str) -> str:
    """``HOST`` or ``HOST:PORT`` as a server knows a peer; :exc:`ValueError` for other text."""
    try:
        return parse_address(address)
    except UnusableQuestion:
        raise ValueError(f"address {address!r}: expected HOST or HOST:PORT") from None


def listing_request(
    namespace: str = "public/default",
    *,
    pattern: str | None = None,
    mode: Mode | str = Mode.PERSISTENT,
    properties: Mapping[str, str] | None = None,
    topics_hash: str | None = None,
    page: Page | None = None,
    wants: Collection[str] = (),
    role: str | None = None,
    address: str = "127.0.0.1:0",
    client_version: str = "broker-core-testing",
) -> ListingRequest:
    """One request, with its pattern compiled and without a deadline; waiting for memory ends at once.

    Raises :exc:`~broker_core.errors.InvalidName` or :exc:`~broker_core.errors.InvalidPattern` as the server would.
    """
    return ListingRequest(
        namespace=NamespaceName.parse(namespace),
        mode=mode_of(mode),
        pattern=None if pattern is None else compile_pattern(pattern),
        topics_hash=topics_hash,
        properties=properties or {},
        page=page,
        wants=frozenset(wants),
        asker=Asker(role=role, remote_address=address_of(address), client_version=client_version),
    )
