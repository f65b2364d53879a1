"""Listings as `pulsar-admin` and clients with an ``http://`` service URL ask for them.

``namespaces/{tenant}/{namespace}/topics?mode=``, ``persistent/{tenant}/{namespace}?properties=``, and the names of
partitioned topics alone (``.../partitioned``). All go the way of every listing: rules, gates, permits, plugins, masks.
"""

from __future__ import annotations

from functools import partial
from typing import Final
from urllib.parse import unquote_plus

from aiohttp import web

from broker_core.errors import Cause
from broker_core.listing import BlockSize, names_json_items, partitioned_topics_json_items
from broker_core.names import Mode
from broker_core.pipeline import QuestionText
from broker_core.servers.http.admin.namespaces import is_known, missing_namespace
from broker_core.servers.http.admin.paths import ADMIN, declared
from broker_core.servers.http.admin.topic_path import BAD_ESCAPE
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.body_writer import RenderedBody, write_body
from broker_core.servers.http.api.json_object import json_response
from broker_core.servers.http.api.listing_problems import namespace_of, sending
from broker_core.servers.http.api.operation import HttpOperation
from broker_core.servers.http.api.problem_details import refused
from broker_core.servers.http.api.topics.listing_answer import answer_to

__all__ = ["operations"]

_MODES: Final = {mode.name: mode for mode in Mode} | {"": Mode.PERSISTENT}
_DOMAINS: Final = {"persistent": Mode.PERSISTENT, "non-persistent": Mode.NON_PERSISTENT}
#: Bytes that each name takes besides its own.
_QUOTES: Final = 3
#: The one bundle that a namespace has here; there are no topics in any other.
_BUNDLES: Final = frozenset({"", "0x00000000_0xffffffff"})


def operations() -> list[HttpOperation]:
    """The operations of this file."""
    path = f"{ADMIN}namespaces/{{tenant}}/{{namespace}}/topics"
    found = [declared("GET", path, _of_mode, question=_question_text)]
    for domain, mode in _DOMAINS.items():
        path = f"{ADMIN}{domain}/{{tenant}}/{{namespace}}"
        question = partial(_question_text, mode=mode)
        found.append(declared("GET", path, partial(_of_domain, mode=mode), question=question))
        found.append(
            declared("GET", f"{path}/partitioned", partial(_partitioned, mode=mode), question=question)
        )
    return found


async def _of_mode(request: ApiRequest) -> web.StreamResponse:
    mode = _MODES.get(request.values.get("mode", ""))
    if mode is None:
        raise refused(404, f"mode is one of {', '.join(filter(None, _MODES))}", Cause.BAD_REQUEST)
    return await _listed(request, mode)


async def _of_domain(request: ApiRequest, *, mode: Mode) -> web.StreamResponse:
    return await _listed(request, mode)


async def _partitioned(request: ApiRequest, *, mode: Mode) -> web.StreamResponse:
    return await _listed(request, mode, partitioned=True)


async def _listed(request: ApiRequest, mode: Mode, *, partitioned: bool = False) -> web.StreamResponse:
    services, namespace = request.services, request.namespace()
    properties = _properties(request.values.get("properties", ""))
    question, _ = request.question(mode, None, properties)
    answer = await answer_to(request, question, None)
    with sending(answer):
        # A plugin that lists nothing of a namespace knows it; the catalogue may have nothing of it at all.
        if not answer.topics and answer.lister == "catalog" and not await is_known(services, namespace):
            raise missing_namespace()
        selection, block = answer.selection, BlockSize()
        assert selection is not None  # the question has no hash
        if request.values.get("bundle", "") not in _BUNDLES:
            return json_response(200, [])
        items = partitioned_topics_json_items if partitioned else names_json_items
        size = selection.fields_size + _QUOTES * len(selection)
        body = RenderedBody("application/json", items(selection, block), block, size, b"[", b"]\n")
        leases = services.permits.leases
        return await write_body(request, body, {}, holds=lambda budget: answer.holds(budget, leases))


def _question_text(request: web.Request, mode: Mode | None = None) -> QuestionText:
    """The question of a request, which may not be valid."""
    mode = _MODES.get(request.query.get("mode", "")) if mode is None else mode
    pairs = _properties(request.query.get("properties", ""))
    return QuestionText(namespace_of(request), None if mode is None else mode.name, None, pairs)


def _properties(text: str) -> list[tuple[str, str]]:
    """The pairs of ``?properties=k1=v1,k2=v2``, once decoded, as a broker of 4.2 parses them.

    It decodes each key and each value once more, so ``%2C`` in it is a comma between pairs. A malformed pair is
    ignored. docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker
    """
    found = []
    for pair in text.split(","):
        key, equals, value = pair.partition("=")
        if equals and not BAD_ESCAPE.search(pair):
            decoded = unquote_plus(key.strip())
            if decoded:
                found.append((decoded, unquote_plus(value.strip())))
    return found
