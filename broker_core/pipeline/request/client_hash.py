"""The client's topics hash: which answers are compared with it, and whether it still holds."""

from __future__ import annotations

from dataclasses import replace

from broker_core.plugin_api import ListingRequest

__all__ = ["has_hash", "is_unchanged", "without_hash"]


def has_hash(request: ListingRequest) -> bool:
    """Whether the answer has a hash: one of all names, and of nothing but names."""
    return request.page is None and not request.wants


def without_hash(request: ListingRequest) -> ListingRequest:
    """The request without the client's hash, for a lister that must not compare it."""
    return request if request.topics_hash is None else replace(request, topics_hash=None)


def is_unchanged(request: ListingRequest, topics_hash: str) -> bool:
    """Whether the client's hash still holds, so that no names are sent."""
    return topics_hash == request.topics_hash
