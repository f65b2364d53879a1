"""broker-core answers one question for messaging clients: which topics of this namespace match, for me?

Plugins only need the names exported here.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.access import Access, Asker, Peer, Principal, Refused
    from broker_core.broker import BrokerHandle
    from broker_core.concurrency import TasksByKey
    from broker_core.errors import Cause
    from broker_core.listing import Details, EncodedNames, Listing, Page, Position, Selection
    from broker_core.memory import BoundedCache
    from broker_core.names import Mode, NamespaceName, TopicName
    from broker_core.plugin_api import (
        SAME,
        Check,
        DescribeRequest,
        HttpRequest,
        HttpSite,
        Lease,
        ListingBuilder,
        ListingRequest,
        RestAnswer,
        TopicListingResult,
        hookimpl,
    )

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
    "HttpRequest",
    "HttpSite",
    "Lease",
    "Listing",
    "ListingBuilder",
    "ListingRequest",
    "Mode",
    "NamespaceName",
    "Page",
    "Peer",
    "Position",
    "Principal",
    "Refused",
    "RestAnswer",
    "Selection",
    "TasksByKey",
    "TopicListingResult",
    "TopicName",
    "__version__",
    "hookimpl",
]

# Arrow and RE2 take long to import, and `broker-core --help` does not need them.
_imported: Final = lazy_exports(
    __name__,
    {
        "Access": ".access",
        "Asker": ".access",
        "BoundedCache": ".memory",
        "BrokerHandle": ".broker",
        "Cause": ".errors",
        "Check": ".plugin_api",
        "DescribeRequest": ".plugin_api",
        "Details": ".listing",
        "EncodedNames": ".listing",
        "HttpRequest": ".plugin_api",
        "HttpSite": ".plugin_api",
        "Lease": ".plugin_api",
        "Listing": ".listing",
        "ListingBuilder": ".plugin_api",
        "ListingRequest": ".plugin_api",
        "Mode": ".names",
        "NamespaceName": ".names",
        "Page": ".listing",
        "Peer": ".access",
        "Position": ".listing",
        "Principal": ".access",
        "Refused": ".access",
        "RestAnswer": ".plugin_api",
        "SAME": ".plugin_api",
        "Selection": ".listing",
        "TasksByKey": ".concurrency",
        "TopicListingResult": ".plugin_api",
        "TopicName": ".names",
        "hookimpl": ".plugin_api",
    },
)


def __getattr__(name: str) -> Any:
    return _version() if name == "__version__" else _imported(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


@cache
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("broker-core")
    except PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"
