"""The users of the catalogue for Kafka's listener: listing them, giving them passwords, removing them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Literal

from aiohttp import web
from pydantic import Field

from broker_core.catalog import AsyncCatalog, ScramRow
from broker_core.kafka.scram import DECOY_USER, HASHES
from broker_core.redaction import quoted
from broker_core.servers.http.api.access.super_operation import (
    NOT_HERE,
    PAGE,
    REFUSALS,
    ItemPage,
    catalog_of,
    super_operation,
)
from broker_core.servers.http.api.api_request import ApiRequest, RequestObject
from broker_core.servers.http.api.json_object import JsonObject, Text
from broker_core.servers.http.api.operation import Body, HttpOperation, Parameter, Reply
from broker_core.servers.http.api.parameters import one_of
from broker_core.servers.http.api.problem_details import refused
from broker_core.service import (
    LONGEST_PASSWORD,
    SHORTEST_PASSWORD,
    check_password,
    check_user,
    store_user,
)

__all__ = ["operations"]

_USERS: Final = "/v1/access/kafka/users"
_JSON: Final = "application/json"
#: Bytes of the body with a password.
_BYTES: Final = 64 * 1024


class _Credential(JsonObject):
    mechanism: str
    iterations: int = Field(description="Rounds of PBKDF2. All users have the same number.")


class _User(JsonObject):
    name: str
    credentials: list[_Credential]


class _UserPage(JsonObject):
    items: list[_User]
    next: str | None = Field(description="The cursor of the next page; null after the last one.")


class _NewPassword(RequestObject):
    wrong = {  # noqa: RUF012 - not a field
        "": 'the body must be an object such as {"password": "..."}',
        "password": "password must be a text",
        "mechanisms": f"mechanisms must be a list of {' and '.join(HASHES)}",
        "allow_short": "allow_short must be true or false",
    }

    password: Text = Field(
        repr=False,
        json_schema_extra={"format": "password", "minLength": 1, "writeOnly": True},
        description=f"One line of at most {LONGEST_PASSWORD} bytes.",
    )
    mechanisms: list[Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]] = Field(
        default=["SCRAM-SHA-256", "SCRAM-SHA-512"],
        min_length=1,
        max_length=2,
        description="Credentials for other mechanisms stay.",
    )
    allow_short: bool = Field(
        default=False, description=f"Take a password of fewer than {SHORTEST_PASSWORD} characters."
    )


_A_USER: Final = {
    "name": "orders-app",
    "credentials": [{"mechanism": mechanism, "iterations": 8192} for mechanism in HASHES],
}
_NO_USER: Final = {**REFUSALS, 404: Reply(f"There is no such user. {NOT_HERE}")}
_USER: Final = Parameter(
    "user", "The name of the user, without `User:`.", within="path", required=True, example="orders-app"
)
_MECHANISM: Final = Parameter(
    "mechanism",
    "Only this one; may be repeated. Without it, both.",
    read=one_of(HASHES),
    schema={"type": "string", "enum": [*HASHES]},
    repeated=True,
)


def operations() -> list[HttpOperation]:
    """The operations of this module."""
    user = {_JSON: _User}
    return [
        super_operation(
            "GET",
            _USERS,
            "listKafkaUsers",
            "The users of the catalogue for Kafka's listener, with their mechanisms.",
            _list_users,
            {
                200: Reply(
                    "A page in the order of the names. No secret is shown.",
                    {_JSON: _UserPage},
                    {"Link": "The address of the next page, if there is one."},
                    {_JSON: {"items": [_A_USER], "next": None}},
                ),
                **REFUSALS,
            },
            parameters=PAGE,
        ),
        super_operation(
            "GET",
            f"{_USERS}/{{user}}",
            "showKafkaUser",
            "One user.",
            _show_user,
            {200: Reply("The user.", user, examples={_JSON: _A_USER}), **_NO_USER},
            parameters=(_USER,),
        ),
        super_operation(
            "PUT",
            f"{_USERS}/{{user}}",
            "putKafkaUser",
            "Add a user, or give it a new password.",
            _put_user,
            {
                200: Reply("The user has this password now.", user, examples={_JSON: _A_USER}),
                201: Reply("The user was added.", user, examples={_JSON: _A_USER}),
                **REFUSALS,
            },
            "What is stored verifies the password by SCRAM, and does not have it. Sessions by a former password end "
            "within a minute.",
            parameters=(_USER,),
            body=Body(
                {_JSON: _NewPassword},
                _BYTES,
                "The password.",
                examples={_JSON: {"password": "correct horse battery staple"}},
            ),
            changes="put_kafka_user",
        ),
        super_operation(
            "DELETE",
            f"{_USERS}/{{user}}",
            "deleteKafkaUser",
            "Remove a user, or its credential for one mechanism.",
            _delete_user,
            {204: Reply("It is gone. Sessions of it end within a minute."), **_NO_USER},
            parameters=(_USER, _MECHANISM),
            changes="delete_kafka_user",
        ),
    ]


def _user_name(request: ApiRequest) -> str:
    name: str = request.values["user"]
    try:
        check_user(name)
    except ValueError as error:
        raise refused(400, f"user {quoted(name)}: {error}") from None
    return name


async def _list_users(request: ApiRequest) -> web.StreamResponse:
    page = ItemPage(request, _by_name(await asyncio.to_thread(catalog_of(request).file.kafka_users)))
    return _UserPage(items=page.items, next=page.next).response(headers=page.headers)


async def _show_user(request: ApiRequest) -> web.StreamResponse:
    catalog, name = catalog_of(request), _user_name(request)
    return (await _shown(catalog, name)).response()


async def _put_user(request: ApiRequest) -> web.StreamResponse:
    catalog, name = catalog_of(request), _user_name(request)
    new = _NewPassword.read(await request.json())
    password = new.password.encode()
    try:
        check_password(password, short=None if new.allow_short else "allow_short")
    except ValueError as error:
        raise refused(400, str(error)) from None
    before = await asyncio.to_thread(_rows_of, catalog, name)
    await asyncio.to_thread(store_user, catalog.file, name, password, [*dict.fromkeys(new.mechanisms)])
    return (await _shown(catalog, name)).response(200 if before else 201)


async def _delete_user(request: ApiRequest) -> web.StreamResponse:
    catalog, name = catalog_of(request), _user_name(request)
    mechanisms = request.values["mechanism"] or tuple(HASHES)
    if not await asyncio.to_thread(catalog.file.remove_kafka_user, name, *mechanisms):
        raise _no_user(name, mechanisms)
    return web.Response(status=204)


def _by_name(rows: Sequence[ScramRow]) -> dict[str, _User]:
    found: dict[str, list[_Credential]] = {}
    for row in rows:
        if row.name != DECOY_USER:
            credential = _Credential(mechanism=row.mechanism, iterations=row.iterations)
            found.setdefault(row.name, []).append(credential)
    return {name: _User(name=name, credentials=credentials) for name, credentials in found.items()}


def _rows_of(catalog: AsyncCatalog, name: str) -> list[ScramRow]:
    rows = (catalog.file.kafka_user(name, mechanism) for mechanism in HASHES)
    return [row for row in rows if row is not None]


async def _shown(catalog: AsyncCatalog, name: str) -> _User:
    found = _by_name(await asyncio.to_thread(_rows_of, catalog, name))
    if name not in found:
        raise _no_user(name, tuple(HASHES))
    return found[name]


def _no_user(name: str, mechanisms: Sequence[str]) -> Exception:
    return refused(404, f"there is no user {quoted(name)} for {' or '.join(mechanisms)}")
