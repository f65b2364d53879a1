"""What the access log says of a listing."""

from __future__ import annotations

from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Final

from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed
from broker_core.logs import LONGEST_TEXT, AccessLog, json_fields, shown
from broker_core.pipeline.answer import Answer
from broker_core.pipeline.standing_answer import StandingAnswer
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["AccessLines"]

_text: Final = encode_basestring_ascii


class AccessLines:
    """Writes a line for each listing that is to have one. Times are in seconds."""

    def __init__(self, log: AccessLog) -> None:
        self._log = log

    def served(self, request: ListingRequest, answer: Answer, waited: float, seconds: float) -> None:
        """A request has an answer."""
        if not self._log.takes_next():
            return
        fields = self._question(request, request.asker)
        fields.append(_answered(answer, answer.lister))
        fields.append(_times(waited, seconds))
        if answer.stale is not None:
            fields.append(f'"stale_s": {answer.stale:.3f}')
        self._log.write(*fields)

    def served_again(self, standing: StandingAnswer, asker: Asker, lister: str, seconds: float) -> None:
        """A question has the answer that it had before."""
        if self._log.takes_next():
            question = self._question(standing.question, asker)
            self._log.write(*question, _answered(standing, lister), _times(0.0, seconds))

    def refused(self, request: ListingRequest, failure: ListingFailed, waited: float, seconds: float) -> None:
        """A request has no answer. The message is left out: it may have text of anybody."""
        self._log.write(
            *self._question(request, request.asker),
            _times(waited, seconds),
            json_fields(
                {
                    "outcome": "refused",
                    "cause": failure.cause.name,
                    "reason": failure.reason,
                    "plugin": failure.plugin,
                }
            ),
        )

    def _question(self, request: ListingRequest, asker: Asker) -> list[str]:
        """Who asks what."""
        pattern = request.topics_pattern
        begin = None if pattern is None else pattern[: LONGEST_TEXT + 1]
        fields = [
            _who(
                asker.role,
                asker.original_principal,
                asker.remote_address,
                asker.client_version,
                asker.transport,
            ),
            _asked(str(request.namespace), request.mode.name, begin),
        ]
        if request.properties and (keys := self._log.properties):
            pairs = {key: shown(value) for key, value in request.properties.items() if key in keys}
            if pairs:
                fields.append(json_fields({"properties": pairs}))
        if request.page is not None:
            fields.append(json_fields({"page_limit": request.page.limit}))
        return fields


@lru_cache(2048)
def _who(role: str | None, principal: str | None, address: str, client_version: str, transport: str) -> str:
    return json_fields(
        {
            "role": role,
            "principal": principal,
            "address": address,
            "client_version": shown(client_version),
            "transport": transport,
        }
    )


@lru_cache(2048)
def _asked(namespace: str, mode: str, pattern: str | None) -> str:
    return json_fields(
        {"namespace": namespace, "mode": mode, "pattern": None if pattern is None else shown(pattern)}
    )


def _answered(answer: Answer | StandingAnswer, lister: str) -> str:
    # Not by json_fields, which takes as long as everything else in a line.
    return (
        f'"outcome": "{"served" if answer.changed else "unchanged"}", "lister": {_text(lister)}, '
        f'"plan": "{answer.plan}", "topics": {answer.topics}, "bytes": {answer.fields_size}, '
        f'"topics_hash": {_text(answer.topics_hash)}, "filtered": {"true" if answer.filtered else "false"}'
    )


def _times(waited: float, seconds: float) -> str:
    return f'"waited_ms": {waited * 1000:.3f}, "total_ms": {seconds * 1000:.3f}'
