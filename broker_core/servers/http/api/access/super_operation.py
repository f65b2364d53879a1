"""The common parts of the operations below /v1/access, which are for super roles, and answer by pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeVar

from aiohttp import hdrs, web

from broker_core.access import OPERATOR
from broker_core.catalog import AsyncCatalog
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.operation import CHANGE_PROBLEMS, HttpOperation, Reply, Right
from broker_core.servers.http.api.parameters import cursor_of, cursor_parameter, limit_parameter
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.services import needs_catalog, needs_changes

__all__ = ["NOT_HERE", "PAGE", "REFUSALS", "ItemPage", "catalog_of", "super_operation"]

_Item = TypeVar("_Item")


NOT_HERE: Final = "Clients of this server are not authenticated: none of this is here then."
REFUSALS: Final = {404: Reply(NOT_HERE), **CHANGE_PROBLEMS}


def super_operation(
    method: str,
    path: str,
    operation_id: str,
    summary: str,
    handler: Callable[[ApiRequest], Awaitable[web.StreamResponse]],
    responses: Mapping[int, Reply],
    description: str = "",
    **more: Any,
) -> HttpOperation:
    """An operation that is for super roles, and for the operator's socket."""
    described = f"{description} For super roles alone, and for the operator's socket.".strip()
    return HttpOperation(
        method,
        path,
        operation_id,
        summary,
        Right.SUPER,
        handler,
        responses,
        description=described,
        tag="access",
        **more,
    )


def catalog_of(request: ApiRequest) -> AsyncCatalog:
    """The catalogue; raises the error 404 if clients are not authenticated, and 501 if there is none."""
    if not request.services.methods and request.asker.transport != OPERATOR:
        raise refused(404, "clients of this server are not authenticated: it has no users and ACLs over HTTP")
    catalog = needs_catalog(request.services)
    if request.attempt.action is not None:
        needs_changes(request.services).check_transport(request.asker)
    return catalog


PAGE: Final = (
    limit_parameter("Items of a page at the most."),
    cursor_parameter(),
)


class ItemPage(Generic[_Item]):
    """The page of a request: the first ``items`` after its cursor in the order of their ``keys``.

    ``next`` is the cursor of the next page, ``None`` after the last one; ``headers`` have its address.
    """

    def __init__(self, request: ApiRequest, items: Mapping[str, _Item]) -> None:
        limit = request.values["limit"]
        keys = sorted(key for key in items if key > request.values["cursor"])
        self.items = [items[key] for key in keys[:limit]]
        self.next = cursor_of(keys[limit - 1]) if len(keys) > limit else None
        self.headers: dict[str, str] = {}
        if self.next is not None:
            query = {name: value for name, value in request.http.query.items() if name != "cursor"}
            url = request.http.rel_url.with_query({**query, "cursor": self.next})
            self.headers = {str(hdrs.LINK): f'<{url}>; rel="next"'}
