"""broker-core answers one question for messaging clients: which topics of this namespace match, for me?

A plugin needs no more than the names exported here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from broker_core.access import Access, Refused
    from broker_core.bounded_cache import BoundedCache
    from broker_core.broker_handle import BrokerHandle
    from broker_core.causes import Cause
    from broker_core.checks import Check
    from broker_core.describe_request import DescribeRequest
    from broker_core.details import Details
    from broker_core.encoded_names import EncodedNames
    from broker_core.hookspecs import hookimpl
    from broker_core.listing import Listing
    from broker_core.listing_builder import ListingBuilder
    from broker_core.listing_request import Asker, ListingRequest
    from broker_core.listing_result import TopicListingResult
    from broker_core.names import Mode, NamespaceName, TopicName
    from broker_core.page import Page, Position
    from broker_core.request_lease import Lease
    from broker_core.rest_answer import SAME, RestAnswer
    from broker_core.selection import Selection

    __version__: str

__all__ = [
    "SAME",
    "Access",
    "Asker",
    "BoundedCache",
    "BrokerHandle",
    "Cause",
    "Check",
    "DescribeRequest",
    "Details",
    "EncodedNames",
    "Lease",
    "Listing",
    "ListingBuilder",
    "ListingRequest",
    "Mode",
    "NamespaceName",
    "Page",
    "Position",
    "Refused",
    "RestAnswer",
    "Selection",
    "TopicListingResult",
    "TopicName",
    "__version__",
    "hookimpl",
]

_HOMES: Final = {
    "Access": "access",
    "Asker": "listing_request",
    "BoundedCache": "bounded_cache",
    "BrokerHandle": "broker_handle",
    "Cause": "causes",
    "Check": "checks",
    "DescribeRequest": "describe_request",
    "Details": "details",
    "EncodedNames": "encoded_names",
    "Lease": "request_lease",
    "Listing": "listing",
    "ListingBuilder": "listing_builder",
    "ListingRequest": "listing_request",
    "Mode": "names",
    "NamespaceName": "names",
    "Page": "page",
    "Position": "page",
    "Refused": "access",
    "RestAnswer": "rest_answer",
    "SAME": "rest_answer",
    "Selection": "selection",
    "TopicListingResult": "listing_result",
    "TopicName": "names",
    "hookimpl": "hookspecs",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: Arrow and RE2 cost a start that `broker-core --help` has no use for."""
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("broker-core")
    except PackageNotFoundError:  # a source tree that nobody installed
        return "0+unknown"
