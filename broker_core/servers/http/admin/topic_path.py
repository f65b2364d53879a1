"""The topic that the path of a request names.

Its local name is percent-encoded UTF-8, in which a plus sign is a space: brokers decode it so, and `pulsar-admin` sends
it so. docs/reference/pulsar-behaviour.md#the-web-service-of-a-broker
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

from aiohttp import web

from broker_core.errors import Cause, InvalidName
from broker_core.names import TopicName
from broker_core.servers.http.api.api_request import ApiRequest
from broker_core.servers.http.api.problem_details import refused

__all__ = ["BAD_ESCAPE", "topic_of_path"]

#: A percent sign that begins no escape.
BAD_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def topic_of_path(request: ApiRequest, domain: str, segment: int) -> TopicName:
    """The topic of a path whose local name is the segment of this number, counted from 0.

    Raises the errors 400, for bytes that are no text, and 412, for text that is no name.
    """
    local = _decoded(request.http, segment)
    try:
        return TopicName(domain, request.namespace(), local)
    except InvalidName:
        raise refused(412, "Topic name is not valid", Cause.NAME) from None


def _decoded(request: web.Request, number: int) -> str:
    # The path as it was sent: aiohttp's decoded one hides bad escapes.
    sent = request.raw_path
    path = sent.partition("?")[0] if sent.startswith("/") else urlsplit(sent).path
    segment = path.split("/")[number + 1]
    try:
        text = unquote_to_bytes(segment.replace("+", " ")).decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or BAD_ESCAPE.search(segment):
        raise refused(400, "The name in the path is no text in UTF-8")
    return text
