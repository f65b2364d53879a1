"""A question to the pipeline itself, for parameters that no transport carries."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from broker_core.access import Asker
from broker_core.listing import Details, Page, Position, checked_wants
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api import ListingRequest
from broker_core.testing.make_request import mode_of
from broker_core.testing.personas import Persona, asker_of

__all__ = ["PipelineAnswer", "ask"]


@dataclass(frozen=True, slots=True)
class PipelineAnswer:
    """An answer of the pipeline: ``topics`` are full names in the order of the answer; ``lister`` names the lister.

    ``changed`` is false if the hash of the question still holds; ``topics`` is empty then. ``stale_seconds`` is the age
    of a former answer in place of a failure. Of a question for a page, ``topics`` have the order of pages, and ``next``
    is the start of the next page (``None``: this is the last). ``details`` has the wanted columns.
    """

    topics: list[str]
    topics_hash: str
    filtered: bool
    changed: bool
    lister: str
    stale_seconds: float | None
    next: Position | None
    details: Details | None

    def __len__(self) -> int:
        return len(self.topics)


async def ask(
    pipeline: Pipeline,
    persona: Persona,
    namespace: str,
    *,
    pattern: str | None,
    mode: Mode | str,
    properties: Mapping[str, str] | None,
    topics_hash: str | None,
    page: Page | None,
    wants: Collection[str],
) -> PipelineAnswer:
    """Ask as a transport does once it has read the question. Raises :exc:`~broker_core.errors.ListingFailed`."""
    if page is not None and not isinstance(page, Page):
        raise TypeError(f"page must be a broker_core.Page or None, not {type(page).__name__}")
    request = ListingRequest(
        namespace=NamespaceName.parse(namespace),
        mode=mode_of(mode),
        topics_hash=topics_hash,
        properties=properties or {},
        page=page,
        wants=checked_wants(wants),
        asker=asker_of(persona, Asker(remote_address="127.0.0.1:0", transport="testing")),
        deadline=asyncio.get_running_loop().time() + pipeline.options.time_budget,
    )
    answer = await pipeline.answer(request, topics_pattern=pattern)
    try:
        return PipelineAnswer(
            topics=answer.names.to_pylist(),
            topics_hash=answer.topics_hash,
            filtered=answer.filtered,
            changed=answer.changed,
            lister=answer.lister,
            stale_seconds=answer.stale,
            next=answer.next,
            details=answer.details,
        )
    finally:
        answer.release()
