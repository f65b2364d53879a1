"""``GET /v1/screens``: the screens that plugins bring to the explorer."""

from __future__ import annotations

from typing import Final

from aiohttp import web
from pydantic import Field

from broker_core.access import Asker
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.json_object import JsonObject
from broker_core.servers.http.api.operation import HttpOperation, Reply, Right
from broker_core.servers.http.api.services import ApiServices

__all__ = ["ScreenObject", "operations"]


class ScreenObject(JsonObject):
    """A screen of a plugin."""

    id: str
    title: str
    plugin: str
    module: str = Field(description="The address of its ES module, from the root of the server.")
    needs: str = Field(description="The right that it needs, in all namespaces.")
    allowed: bool = Field(description="Whether the client has that right.")


class _Screens(JsonObject):
    items: list[ScreenObject]


_EXAMPLE: Final = {
    "items": [
        {
            "id": "postgres",
            "title": "PostgreSQL",
            "plugin": "postgres",
            "module": "postgres/@0123456789abcdef/screen.js",
            "needs": "monitor",
            "allowed": True,
        }
    ]
}


def operations(services: ApiServices, screens: list[ScreenObject]) -> list[HttpOperation]:
    """The operation of this module."""

    async def show(request: ApiRequest) -> web.StreamResponse:
        items = [
            each.model_copy(update={"allowed": _has_right(services, request.asker, each.needs)})
            for each in screens
        ]
        return _Screens(items=items).response()

    return [
        HttpOperation(
            "GET",
            "/v1/screens",
            "listScreens",
            "The screens that plugins bring to the explorer.",
            Right.CREDENTIALS,
            show,
            {
                200: Reply(
                    "All of them, in the order of the plugins.",
                    {"application/json": _Screens},
                    examples={"application/json": _EXAMPLE},
                )
            },
            tag="server",
        )
    ]


def _has_right(services: ApiServices, asker: Asker, needs: str) -> bool:
    authorization = services.pipeline.authorization
    if needs == "super":
        return authorization.is_super(asker)
    return needs in {"nothing", "credentials"} or authorization.allows(asker, needs, None)
