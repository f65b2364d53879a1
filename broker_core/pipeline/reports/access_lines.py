"""The lines of the access log about listings."""

from __future__ import annotations

from functools import lru_cache

from broker_core.access import Asker
from broker_core.compact_json import ascii_text
from broker_core.errors import ListingFailed
from broker_core.logs import LONGEST_TEXT, AccessLog, json_fields, shown
from broker_core.pipeline.answers.answer import Answer
from broker_core.pipeline.answers.question_text import QuestionText
from broker_core.pipeline.answers.reusable_answer import ReusableAnswer
from broker_core.plugin_api import ListingRequest

__all__ = ["AccessLines"]


class AccessLines:
    """Writes a line for each listing that the settings choose. Times are in seconds."""

    def __init__(self, log: AccessLog) -> None:
        self._log = log

    def ended(
        self,
        request: ListingRequest,
        answer: Answer,
        waited: float,
        seconds: float,
        unsent: ListingFailed | None,
    ) -> None:
        """Write that the answer to a request was sent, or could not be."""
        if unsent is not None:
            self.refused(QuestionText.of(request), request.asker, unsent, waited, seconds)
        elif self._log.takes_next():
            fields = self._question(QuestionText.of(request), request.asker)
            fields += (_answered(answer, answer.lister, answer.shown), _times(waited, seconds))
            if answer.stale is not None:
                fields.append(f'"stale_s":{answer.stale:.3f}')
            self._log.write(*fields)

    def ended_again(
        self,
        reusable: ReusableAnswer,
        asker: Asker,
        lister: str,
        seconds: float,
        unsent: ListingFailed | None,
    ) -> None:
        """Write that a question's earlier answer was sent again, or could not be."""
        if unsent is not None:
            self.refused(QuestionText.of(reusable.question), asker, unsent, 0.0, seconds)
        elif self._log.takes_next():
            question = self._question(QuestionText.of(reusable.question), asker)
            self._log.write(*question, _answered(reusable, lister), _times(0.0, seconds))

    def refused(
        self, question: QuestionText, asker: Asker, failure: ListingFailed, waited: float, seconds: float
    ) -> None:
        """Write that a question has no answer, or that its client does not get it.

        The message is left out: it may have text from anywhere.
        """
        self._log.write(
            *self._question(question, asker),
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

    def _question(self, question: QuestionText, asker: Asker) -> list[str]:
        """The asker and its question, as a line has them."""
        fields = [
            _who(
                asker.role,
                asker.original_principal,
                asker.remote_address,
                asker.client_version,
                asker.transport,
            ),
            _question_words(_begin(question.namespace), question.mode, _begin(question.pattern)),
        ]
        if keys := self._log.properties:
            pairs = {key: shown(value) for key, value in question.properties if key in keys}
            if pairs:
                fields.append(json_fields({"properties": pairs}))
        if question.page_limit is not None:
            fields.append(json_fields({"page_limit": question.page_limit}))
        return fields


def _begin(text: str | None) -> str | None:
    """The beginning of a text, with a mark if there is more."""
    return None if text is None else text[: LONGEST_TEXT + 1]


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
def _question_words(namespace: str | None, mode: str | None, pattern: str | None) -> str:
    return json_fields(
        {
            "namespace": None if namespace is None else shown(namespace),
            "mode": mode,
            "pattern": None if pattern is None else shown(pattern),
        }
    )


def _answered(answer: Answer | ReusableAnswer, lister: str, shown: int | None = None) -> str:
    # Not by json_fields, which takes as long as everything else in a line.
    sent = f'{answer.topics},"bytes":{answer.fields_size}' if shown is None else str(shown)
    return (
        f'"outcome":"{"served" if answer.changed else "unchanged"}","lister":{ascii_text(lister)},'
        f'"plan":"{answer.plan}","topics":{sent},'
        f'"topics_hash":{ascii_text(answer.topics_hash)},"filtered":{"true" if answer.filtered else "false"}'
    )


def _times(waited: float, seconds: float) -> str:
    return f'"waited_ms":{waited * 1000:.3f},"total_ms":{seconds * 1000:.3f}'
