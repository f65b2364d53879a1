"""The listers (``broker_core_list_topics``): the plugins that list a namespace, and a question to one of them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from broker_core.access import Refused
from broker_core.errors import Cause
from broker_core.names import NamespaceName
from broker_core.plugin_api import (
    AnswerKind,
    ListingRequest,
    RequestServices,
    TopicListingResult,
    check_result,
)
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.hooks.dependencies import DeclaredDependencies
from broker_core.plugins.namespace_chain import NamespaceChains

__all__ = ["LIST", "ListerHook", "checked_answer"]

LIST: Final = "broker_core_list_topics"


@dataclass(slots=True, eq=False)
class ListerHook:
    """Caller of the plugins that list."""

    _chains: NamespaceChains
    _dependencies: DeclaredDependencies

    def chain(self, namespace: NamespaceName) -> tuple[tuple[str, HookCaller | None], ...]:
        """All plugins that list, in the operator's order; ``None`` for one that does not list this namespace."""
        return self._chains.of(namespace).listers

    def plugins(self, namespace: NamespaceName) -> list[str]:
        """The plugins that are asked to list this namespace."""
        return [name for name, caller in self.chain(namespace) if caller is not None]

    def depends_on(self, namespace: NamespaceName, first: int = 0) -> frozenset[str]:
        """All dependencies of the answers of plugins from number ``first`` of the chain on."""
        listers = self.chain(namespace)[first:]
        return frozenset().union(
            *(self._dependencies.of(name) for name, caller in listers if caller is not None)
        )

    def asking(
        self, caller: HookCaller, request: ListingRequest, services: RequestServices | None = None
    ) -> AbstractAsyncContextManager[tuple[TopicListingResult | None, str]]:
        """A block in which one plugin's answer, and the word for it, are accepted: :meth:`HookCaller.calling`.

        The answer has the right types. Names are checked in the block, as those of all listings.
        """
        own = self._dependencies.request_for(request, caller.name, services)
        return caller.calling(own, checked_answer)


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


def _is_sound(refused: Refused | None) -> bool:
    return type(refused) is Refused and isinstance(refused.message, str) and isinstance(refused.cause, Cause)


def _instead(answer: object) -> str:
    """Advice on what to return in place of an invalid answer."""
    if isinstance(answer, bool):
        return "write `return None` to pass"
    if answer is TopicListingResult or callable(answer):
        return "write the brackets of a call, as in `return TopicListingResult.pass_through()`"
    return "write `return TopicListingResult.success(topics)`"
