"""Failures of brokers that were asked to list, as failures of the listing: one table for all askers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from broker_core.client import ClientError, HandshakeRefused, ServerRefused
from broker_core.errors import Cause, ListingFailed, cause_of
from broker_core.upstream.pulsar.upstream_connections import UpstreamConnections

__all__ = ["broker_failures"]


@contextmanager
def broker_failures(connections: UpstreamConnections) -> Iterator[None]:
    """Raise :exc:`ListingFailed` for failures of brokers that are asked over these connections."""
    try:
        yield
    except TimeoutError:
        raise ListingFailed(
            "The brokers behind this server did not answer the listing in time",
            cause=Cause.UPSTREAM,
            reason="upstream",
        ) from None
    except HandshakeRefused as refused:
        of_client = connections.is_of_client(refused)
        raise ListingFailed(
            f"The brokers behind this server refused the connection: {refused}",
            cause=Cause.DENIED if of_client else Cause.UPSTREAM,
            reason="denied" if of_client else "upstream",
        ) from None
    except ServerRefused as refused:
        cause = cause_of(refused.code, otherwise=Cause.UPSTREAM)
        raise ListingFailed(
            refused.message or refused.code.name,
            cause=cause,
            code=refused.code,
            reason="denied" if cause is Cause.DENIED else "upstream",
        ) from None
    except ClientError as error:
        raise ListingFailed(
            f"Cannot list at the brokers behind this server: {error}",
            cause=Cause.UPSTREAM,
            reason="upstream",
        ) from None
