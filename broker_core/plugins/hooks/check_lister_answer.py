"""Checks of the answers of ``broker_core_list_topics``, before anything of them is used."""

from __future__ import annotations

from broker_core.access import Refused
from broker_core.errors import Cause
from broker_core.plugin_api import AnswerKind, ListingRequest, TopicListingResult, check_result
from broker_core.plugins.failures import RefusedByPlugin
from broker_core.plugins.raised_exceptions import bounded

__all__ = ["checked_answer", "refusal_of"]


def checked_answer(answer: object, request: ListingRequest) -> tuple[TopicListingResult | None, str]:
    """A lister's answer and the word for it; an error for an invalid answer to this request.

    The answer is ``None`` if the lister passes without a reason.
    """
    services = getattr(request, "services", None)
    if services is not None and services.wrong is not None:
        raise ValueError(services.wrong)  # it caught the error that said so
    if answer is None:
        return None, AnswerKind.PASS_THROUGH.value
    if not isinstance(answer, TopicListingResult):
        raise TypeError(
            f"it returned a {type(answer).__name__}, not a TopicListingResult or None: {_instead(answer)}"
        )
    if type(answer) is not TopicListingResult:
        raise TypeError(
            f"it returned a {type(answer).__name__}, and not what TopicListingResult.success() made"
        )
    check_result(answer)
    if answer.is_pass_through:
        return None if answer.why is None else answer, AnswerKind.PASS_THROUGH.value
    if answer.kind is AnswerKind.REFUSED and not _is_sound(answer.refusal):
        raise TypeError("it returned a refusal whose fields were changed")
    if answer.kind is AnswerKind.UNCHANGED and answer.topics_hash != request.topics_hash:
        if request.topics_hash is None:
            raise ValueError("it returned unchanged(), but the request carries no topics hash")
        raise ValueError("it returned unchanged() with another hash than the request carries")
    return answer, answer.kind.value


def refusal_of(plugin: str, answer: TopicListingResult) -> RefusedByPlugin:
    """The error for the client if a plugin refused."""
    refused = answer.refusal
    assert refused is not None
    return RefusedByPlugin(plugin, bounded(refused.message), refused.cause, reason="refused")


def _is_sound(refused: Refused | None) -> bool:
    return type(refused) is Refused and isinstance(refused.message, str) and isinstance(refused.cause, Cause)


def _instead(answer: object) -> str:
    """Advice on what to return in place of an invalid answer."""
    if isinstance(answer, bool):
        return "write `return None` to pass"
    if answer is TopicListingResult or callable(answer):
        return "write the brackets of a call, as in `return TopicListingResult.pass_through()`"
    return "write `return TopicListingResult.success(topics)`"
