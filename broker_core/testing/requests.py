"""A question as a plugin gets it, for tests that call a hook as the function it is."""

from __future__ import annotations

from collections.abc import Mapping

from broker_core.listing_request import Asker, ListingRequest
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern

__all__ = ["listing_request"]


def listing_request(
    namespace: str = "public/default",
    *,
    pattern: str | None = None,
    mode: Mode = Mode.PERSISTENT,
    properties: Mapping[str, str] | None = None,
    topics_hash: str | None = None,
    role: str | None = None,
    client_version: str = "broker-core-testing",
) -> ListingRequest:
    """One request, with its pattern compiled and without a deadline; waiting for memory ends at once.

    Raises :exc:`~broker_core.errors.InvalidName` or :exc:`~broker_core.errors.InvalidPattern` as the server would.
    """
    return ListingRequest(
        namespace=NamespaceName.parse(namespace),
        mode=mode,
        pattern=None if pattern is None else compile_pattern(pattern),
        topics_hash=topics_hash,
        properties=properties or {},
        asker=Asker(role=role, remote_address="127.0.0.1:0", client_version=client_version),
    )
