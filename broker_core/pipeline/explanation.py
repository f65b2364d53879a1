"""Explains how one listing comes about: the same pipeline, run once with a record of each step."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

from broker_core.access import RULE_ACTIONS, Asker
from broker_core.errors import ListingFailed
from broker_core.listing import Details, Page, PageStart, PageWalk
from broker_core.names import Mode, topic_id_text
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import Answer, RestTrace, Trace
from broker_core.pipeline.pipeline import Pipeline
from broker_core.pipeline.watchable_questions import unfit_for_watches, unwatchable_pattern
from broker_core.plugin_api import AnswerKey, ListerNotes, ListingRequest
from broker_core.plugins import ChainStep, PluginFailed, RestFailed, bounded

__all__ = ["explain", "pattern_facts"]

#: Topics whose details are shown.
_SHOWN_DETAILS: Final = 10
#: Bytes of the names that are shown, unless the first one alone has more; and how many of them are read at a time.
_NAMES_BYTES: Final = 1024 * 1024
_NAMES_AT_ONCE: Final = 50
#: The purpose of each kind of kept answers: to be taken again while a version holds, in place of a failed answer, or
#: after the masks.
_KEPT_FOR: Final = {
    "kept": "version",
    "version": "version",
    "last": "failure",
    "last hash": "failure",
    "masked": "masks",
}


async def explain(pipeline: Pipeline, request: ListingRequest, *, names: int = 0) -> dict[str, Any]:
    """Run a request and describe, in plain values, the answer of each plugin, how the pattern was applied, and the
    cost.

    ``rules`` has the decision of the authorization rules about each action and each principal of the asker: ``role``,
    ``action``, ``allowed`` and the ``rule`` that decided; it is empty if there are no rules. ``gates`` has every gate
    that was asked, with ``answer`` one of ``allowed``, ``refused`` and ``error``; ``chain`` every plugin that lists, in
    order, with ``answer`` one of ``success``, ``pass_through``, ``unchanged``, ``refused``, ``error``, ``not_asked``
    and its ``ms`` (``why`` it passed, if it says so; ``stale_s``, if a former answer of that age stands in for a
    failure with ``error``); ``masks`` the plugins that hid topics. ``plan`` is ``none`` (no pattern), ``all``,
    ``literal``, ``range``, ``scan``, ``unsupported`` or ``lister`` (the lister had filtered). ``topics`` counts the
    names of the answer, ``bytes`` its encoded names. Of a page, ``next`` is the first name of the next one; ``details``
    says of how many topics something is known, and what, with the details of the ``first`` topics. ``kept`` says whose
    answer a server keeps after this, ``for`` a ``version``, a ``failure`` or ``masks``. ``snapshot`` has the ``age_s``
    of a gateway's listing and ``of`` whom it is: ``principal``, the ``role`` that lists for all, or ``all`` if brokers
    know no principals; ``null`` if the brokers were asked for this request. ``names`` has the first names of the
    answer, in the order of pages, as many as are asked for, and 1 MiB of them at the most. ``watch_refused`` says why a
    client may not watch the answer, and polls; ``null`` if it may. A request that fails has ``error``, ``cause`` and
    ``code`` in place of an answer. ``warnings`` says in words what else an operator should know: a question that
    selects otherwise than it seems, a false claim of a plugin, and a former answer, taken or kept, in place of a
    failure.
    """
    trace = Trace(explains=True)
    started = time.perf_counter()
    report: dict[str, Any] = {
        "namespace": str(request.namespace),
        "mode": request.mode.name,
        "topics_pattern": request.topics_pattern,
        "properties": dict(request.properties),
        "asker": {
            "role": request.asker.role,
            "original_principal": request.asker.original_principal,
            "address": request.asker.remote_address,
            "client_version": request.asker.client_version,
        },
        "pattern": None if request.pattern is None else pattern_facts(request.pattern),
        "page": _page(request.page),
        "wants": sorted(request.wants),
    }
    try:
        answer = await pipeline.answer(request, trace)
    except ListingFailed as failure:
        return report | {
            **_way(pipeline, request, trace),
            "lister": None,
            "plan": None,
            "topics": None,
            "error": failure.message,
            "code": failure.code.name,
            "cause": failure.cause.value,
            "plugin": failure.plugin,
            "detail": failure.detail if isinstance(failure, PluginFailed | RestFailed) else failure.message,
            "warnings": [*trace.false_claims, *_former_answers(pipeline, trace.chain)],
            "ms": _ms(time.perf_counter() - started),
        }
    notes = pipeline.lister.notes(request) if answer.lister == pipeline.lister.name else ListerNotes()
    try:
        shown = {"names": await _first_names(pipeline, request, answer, names)} if names else {}
        return report | {
            **shown,
            **_way(pipeline, request, trace),
            "lister": answer.lister,
            "plan": answer.plan,
            "listed": trace.listed,
            "visible": trace.visible,
            "topics": answer.topics,
            "filtered": answer.filtered,
            "changed": answer.changed,
            "stale_s": None if answer.stale is None else round(answer.stale, 3),
            "topics_hash": answer.topics_hash,
            "bytes": answer.fields_size,
            "next": None if answer.next is None else answer.next.name,
            "details": _details(answer.details),
            "permits": trace.permits,
            "kept": _kept(pipeline, request),
            "snapshot": None if notes.snapshot is None else dict(notes.snapshot),
            "watch_refused": await _watch_refused(pipeline, request),
            "warnings": [
                *(warning.text for warning in answer.warnings),
                *trace.false_claims,
                *_former_answers(pipeline, trace.chain),
                *notes.warnings,
            ],
            "ms": _ms(time.perf_counter() - started),
        }
    finally:
        answer.release()


def _way(pipeline: Pipeline, request: ListingRequest, trace: Trace) -> dict[str, Any]:
    """The decisions of rules and plugins on the way to the answer, or to its error."""
    return {
        "rules": _rules(pipeline, request.asker, str(request.namespace)),
        "gates": _steps(trace.gates),
        "chain": _steps(trace.chain),
        "rest": _rest(trace.rest),
        "masks": _steps(trace.masks),
    }


async def _first_names(pipeline: Pipeline, request: ListingRequest, answer: Answer, most: int) -> list[str]:
    """The first names of an answer, in the order of pages, of :data:`_NAMES_BYTES` at the most."""
    listed = _names_of(answer, most)
    return await pipeline.workers.call(request.asker, partial(_within_bytes, listed))


def _names_of(answer: Answer, most: int) -> Iterator[list[str]]:
    """The first names of an answer, some at a time: clients choose how long they are."""
    if answer.page_names is not None:
        for first in range(0, min(most, len(answer.page_names)), _NAMES_AT_ONCE):
            yield answer.page_names.slice(first, min(_NAMES_AT_ONCE, most - first)).to_pylist()
    elif answer.selection is not None:
        walk, left = PageWalk(answer.selection), most
        place: PageStart | None = PageStart()
        while place is not None and left > 0:
            some, place = walk.block(place, min(left, _NAMES_AT_ONCE)).read()
            names = some.first(left).names.to_pylist()
            left -= len(names)
            yield names


def _within_bytes(listed: Iterable[list[str]]) -> list[str]:
    found: list[str] = []
    left = _NAMES_BYTES
    for name in itertools.chain.from_iterable(listed):
        left -= len(name.encode())
        if left < 0 and found:
            break
        found.append(name)
    return found


async def _watch_refused(pipeline: Pipeline, request: ListingRequest) -> str | None:
    """The reason why a watch of this question would be refused, if it would."""
    if request.mode is Mode.NON_PERSISTENT:
        return "a watch is of persistent topics"
    refused = unwatchable_pattern(pipeline, request.pattern)
    if refused is not None:
        return refused
    try:
        refused = await unfit_for_watches(pipeline, request.namespace, request.asker)
    except ListingFailed as failure:
        return failure.message
    declares = [
        name
        for name in pipeline.dispatcher.properties_matter_to(request.namespace)
        if "broker_core_depends_on" not in pipeline.dispatcher.registry[name].implementations
    ]
    if refused is not None and declares:
        named = ", ".join(map(repr, declares))
        refused += f"; {named} may declare what answers do depend on: broker_core_depends_on"
    return refused


def _former_answers(pipeline: Pipeline, chain: Iterable[ChainStep]) -> Iterator[str]:
    """The warnings about failed plugins whose last answer may stand in."""
    for step in chain:
        if step.stale is not None:
            yield (
                f"plugin {step.plugin!r} failed: what stands in for its answer is its last one, {step.stale:.3g} s old "
                "(on_failure is stale)"
            )
        elif step.answer == "error":
            options = pipeline.dispatcher.registry[step.plugin].options
            if options.on_failure == "stale":
                yield (
                    f"plugin {step.plugin!r} failed, and there is no former answer of it here: a server that has one "
                    f"to this question, at most {options.max_stale:g} s old, answers with that (on_failure is stale)"
                )


def _kept(pipeline: Pipeline, request: ListingRequest) -> list[dict[str, str | None]]:
    """The answers that a server has kept once it has answered: of which plugin, and what for."""
    found: set[tuple[str, str | None]] = set()
    for kind, key, *_ in cast("list[tuple[str, AnswerKey]]", pipeline.answers.keys(request.namespace)):
        found.add((_KEPT_FOR[kind], None if kind == "masked" else str(key.parts[0])))
    return [{"plugin": plugin, "for": purpose} for purpose, plugin in sorted(found, key=str)]


def _page(page: Page | None) -> dict[str, Any] | None:
    if page is None:
        return None
    return {"start": None if page.start is None else page.start.name, "limit": page.limit}


def _details(details: Details | None) -> dict[str, Any] | None:
    if details is None:
        return None
    first = Details(details.batch.slice(0, _SHOWN_DETAILS)).to_pylist()
    return {
        "topics": len(details),
        "columns": list(details.columns),
        "first": [{name: _detail(value) for name, value in row.items()} for row in first],
    }


def _detail(value: object) -> object:
    """A value as programs and people see it: ids in base64, times in ISO 8601."""
    if isinstance(value, bytes):
        return topic_id_text(uuid.UUID(bytes=value))
    return (
        value.replace(tzinfo=UTC).isoformat(timespec="milliseconds") if isinstance(value, datetime) else value
    )


def pattern_facts(pattern: TopicsPattern) -> dict[str, Any]:
    """The facts of a pattern before it runs, in plain values."""
    return {
        "text": pattern.text,
        "supported": pattern.supported,
        "reason": pattern.reason,
        "literal": pattern.literal,
        "ranges": [[_shown(low), _shown(high)] for low, high in pattern.ranges],
        "required": list(pattern.required),
    }


def _shown(bound: bytes) -> str:
    return bound.decode(errors="backslashreplace")


def _rules(pipeline: Pipeline, asker: Asker, namespace: str) -> list[dict[str, Any]]:
    authorization = pipeline.authorization
    if not authorization.on:
        return []
    return [
        {"role": each.role, "action": action, "allowed": each.allowed, "rule": each.rule}
        for action in RULE_ACTIONS
        for each in authorization.decisions(asker, action, namespace)
    ]


def _steps(steps: Iterable[ChainStep]) -> list[dict[str, Any]]:
    return [
        {"plugin": step.plugin, "answer": step.answer, "ms": _ms(step.seconds)}
        | ({} if step.error is None else {"error": step.error})
        | ({} if step.why is None else {"why": bounded(step.why)})
        | ({} if step.stale is None else {"stale_s": round(step.stale, 3)})
        | ({} if step.version is None else {"version": step.version})
        | ({"kept": True} if step.kept else {})
        for step in steps
    ]


def _rest(traces: Iterable[RestTrace]) -> list[dict[str, Any]]:
    """The questions of plugins to the rest of the chain, and the results."""
    return [
        {
            "plugin": each.plugin,
            "topics_pattern": each.topics_pattern,
            "properties": each.properties,
            "chain": _steps(each.chain),
            "topics": each.listed,
            "rest": _rest(each.rest),
        }
        for each in traces
    ]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
