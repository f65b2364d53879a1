"""Reasons to pass a question to the next lister: it cannot be answered exactly here."""

from __future__ import annotations

from typing import Final

from broker_core.errors import BrokerCoreError

__all__ = ["PASS_REASONS", "UNDECLARED_STATIC", "PassToNextLister"]

#: The words of the metrics, and their meaning.
PASS_REASONS: Final = {
    "no_generation": "no generation is served yet",
    "unsupported_pattern": "RE2 does not know the pattern, or it is too long",
    "namespace": "the generation does not have the namespace",
    "not_registered": "the generation does not have the question",
    "wrong_answer": "the generation's answer has topics that do not match, or another hash than theirs",
    "property_keys": "the broker selects topics by other properties than the generation",
    "no_change_log": "no lister has a change log, and the catalogue is not declared as static",
    "not_declared_static": "the generation is of a catalogue without versions, which was not declared as static",
    "too_old": "no change log brings the generation up to date, and it is older than max_age",
    "other_catalogue": "the generation is of another catalogue than the one that is served here",
    "unreachable": "the change log could not be read",
    "gap": "the change log does not reach back to the generation",
    "overlay_limit": "more topics changed than overlay_limit allows",
    "answers_limit": "an answer that changes touched does not fit into the memory for answers",
}

#: The advice about ``not_declared_static``.
UNDECLARED_STATIC: Final = (
    "all its questions pass, because its catalogue has no versions: set static = true in [plugins.spark] if that "
    "catalogue never changes, or max_age to the age that its answers may have"
)


class PassToNextLister(BrokerCoreError):
    """Passes a question to the next lister. ``reason`` is one of :data:`PASS_REASONS`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
