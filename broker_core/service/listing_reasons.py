"""The reasons why a topic is listed for a client, or is not: each step that may remove it, and what would make it pass.

Each step asks the part that decides it: the rules, the gates, existence, the pattern, the masks. At last the listing
itself is asked, which is what counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.access import Access, Asker
from broker_core.counted import counted
from broker_core.errors import ListingFailed
from broker_core.guards import HELD
from broker_core.names import MAX_PARTITIONS, NON_PERSISTENT, PERSISTENT, TopicName
from broker_core.patterns import compile_pattern
from broker_core.pipeline import Pipeline
from broker_core.plugin_api import ListingRequest
from broker_core.plugins import ChainStep, RefusedByPlugin
from broker_core.service.find_topics import Find, TopicAsker
from broker_core.service.plugin_topics import Known

__all__ = ["NeededChange", "Step", "Why", "why_listed"]

#: Names of a topic that masks are asked about: of its first partitions.
_MOST_NAMES: Final = 1000
_MOST_PARTITIONS: Final = f"a topic has at most {MAX_PARTITIONS} partitions"
_OTHER: Final = {PERSISTENT: NON_PERSISTENT, NON_PERSISTENT: PERSISTENT}
_WANTS: Final = frozenset({"partitions", "properties"})


@dataclass(frozen=True, slots=True)
class NeededChange:
    """A change of the catalogue that lets a topic pass: it is made, or gets partitions or properties."""

    makes: bool = False
    partitions: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """The effect of one step on the topic: it ``passes``, or is removed; ``None`` if unknown.

    ``by`` names the part that decides, ``says`` its decision, and ``needs`` what would make the topic pass; ``change``
    is the change that does, if one does and no other step removes the topic then too. ``fails`` is set if the whole
    listing is an error by this step.
    """

    step: str
    passes: bool | None
    by: str | None
    says: str
    needs: str | None = None
    change: NeededChange | None = None
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Why:
    """The steps in the order of a listing; ``listed`` is ``None`` if there is no listing."""

    topic: TopicName
    listed: bool | None
    steps: tuple[Step, ...]

    @property
    def blocked_by(self) -> str | None:
        """The first step that fails if the listing does, or else the first one that removes the topic."""
        removing = [each for each in self.steps if each.passes is False]
        failing = [each for each in removing if each.fails and self.listed is None]
        return next((each.step for each in failing or removing), None)


async def why_listed(pipeline: Pipeline, find: Find, question: ListingRequest, topic: TopicName) -> Why:
    """The reasons why a topic, or one of its partitions, is in the answer to a question, or is not."""
    asker, base = question.asker, topic.partitioned_name
    steps = list(_rules(pipeline, asker, base))
    if all(each.passes for each in steps):
        steps.append(await _gates(pipeline, question))
    else:  # which nobody asks then
        steps.append(Step("gates", None, None, "not asked, since the rules deny it"))
    topic_asker = TopicAsker(asker=asker, action=None, wants=_WANTS, deadline=question.deadline)
    try:
        known = await find.there(topic_asker, base)
        twin = TopicName(_OTHER[base.domain], base.namespace, base.local)
        is_other = False
        if not known.exists:
            with suppress(ListingFailed):  # the other domain was not asked for
                is_other = (await find.there(topic_asker, twin)).exists
        steps.append(_existence(pipeline, question, topic, known, twin if is_other else None))
    except ListingFailed as failure:
        known = Known(exists=False)
        steps.append(_failed("exists", failure))
    steps.append(_mode(question, base, known))
    if question.properties:
        steps.append(_properties(pipeline, question, known))
    if question.pattern is not None:
        steps.append(_pattern(question, base))
    if pipeline.dispatcher.masks(topic.namespace):
        steps.append(await _masks(pipeline, question, topic, known))
    listed, last = await _listing(pipeline, question, topic)
    if last.fails:
        is_explained = any(each.fails for each in steps)
    else:
        is_explained = last.passes is False and any(each.passes is False for each in steps)
    if not is_explained:
        steps.append(last)
    if not _lets_change(pipeline, topic, listed, last, steps):
        steps = [replace(each, change=None) for each in steps]
    return Why(topic, listed, tuple(steps))


def _lets_change(
    pipeline: Pipeline, topic: TopicName, listed: bool | None, last: Step, steps: list[Step]
) -> bool:
    """Whether changes of the topic would get it listed: not in a listing that fails, and not if a plugin lists the
    namespace, or if a step removes it that no change mends. A name with blanks around it is a mistake.
    """
    return (
        listed is False
        and last.by not in pipeline.dispatcher.lister_hook.plugins(topic.namespace)
        and topic.local == topic.local.strip()
        and all(each.change is not None for each in steps if each.passes is False)
    )


def _rules(pipeline: Pipeline, asker: Asker, topic: TopicName) -> Iterator[Step]:
    """The decision of the rules about each principal of the asker."""
    rules = pipeline.authorization
    if not rules.on:
        return
    roles = [asker.role] if asker.original_principal is None else [asker.role, asker.original_principal]
    for role in roles:
        decision = rules.decide(role, "list", str(topic.namespace), topic.local)
        holder = "a client without a role" if not role else f"role {role!r}"
        verb = "may" if decision.allowed else "may not"
        needs = None
        if not decision.allowed:
            needs = (
                f"a change of {decision.rule}"
                if decision.rule.startswith("rule ")
                else "credentials that give the client a role"
                if not role
                else f"a rule that allows role {role!r} to list it"
            )
        says = f"{holder} {verb} list {topic}"
        fails = not rules.decide(role, "list", str(topic.namespace)).allowed
        yield Step("rules", decision.allowed, decision.rule, says, needs, fails=fails)


async def _gates(pipeline: Pipeline, question: ListingRequest) -> Step:
    steps: list[ChainStep] = []
    try:
        await pipeline.ask_gates(
            Access("list", question.namespace, None, question.asker), question.deadline, steps
        )
    except RefusedByPlugin as refused:
        needs = f"plugin {refused.plugin!r} must let it pass"
        return Step("gates", False, refused.plugin, refused.message, needs, fails=True)
    except ListingFailed as failure:
        return _failed("gates", failure, "the plugin must answer")
    names = ", ".join(each.plugin for each in steps)
    return Step("gates", True, names or None, "let it pass" if names else "no plugin decides about it")


def _existence(
    pipeline: Pipeline, question: ListingRequest, topic: TopicName, known: Known, twin: TopicName | None
) -> Step:
    """Whether the topic or partition exists; ``twin`` has its name in the other domain, if there is one."""
    by = ", ".join([*pipeline.dispatcher.lister_hook.plugins(topic.namespace), pipeline.lister.name])
    if twin is not None:
        says = f"there is no topic {topic.partitioned_name}, but {twin} is there"
        return Step("exists", False, by, says, f"its full name, {twin}")
    if not known.exists:
        return _missing(pipeline, question, topic, by)
    partitions = counted(known.partitions, "partition") if known.partitions else ""
    number = topic.partition
    if number < 0:
        return Step("exists", True, by, f"the topic is there{partitions and f' with {partitions}'}")
    base, record = topic.partitioned_name.local, known.record
    if number < known.partitions if record is None else number in record.listed:
        return Step("exists", True, by, f"{base} is there, and has a partition {number}")
    has = f"it has {partitions}, counted from 0" if partitions else "it is not partitioned"
    says = f"{base} has no partition {number}: {has}"
    if not partitions:
        return Step("exists", False, by, says, f"the name {base}")
    if number >= MAX_PARTITIONS:
        return Step("exists", False, by, says, f"the name {base}: {_MOST_PARTITIONS}")
    grown = max(known.partitions, number + 1)
    needs = f"partition {number} must be made: the topic has {counted(grown, 'partition')} then, and they only grow"
    return Step("exists", False, by, says, needs, NeededChange(partitions=grown))


def _missing(pipeline: Pipeline, question: ListingRequest, topic: TopicName, by: str) -> Step:
    """The step of a topic that must be made, for a partition with partitions."""
    says = f"there is no topic {topic.partitioned_name}"
    if topic.partition >= MAX_PARTITIONS:
        return Step("exists", False, by, says, f"another name: {_MOST_PARTITIONS}")
    base = topic.partitioned_name
    if topic.partition >= 0 and base.partition >= 0:
        needs = f"another name: {base.local} is the name of a partition, which has none of its own"
        return Step("exists", False, by, says, needs)
    properties = _selecting(pipeline, question)
    partitions = topic.partition + 1 or None
    having = [counted(partitions, "partition")] if partitions else []
    having += [f"{key}={value}" for key, value in sorted(properties.items())]
    needs = ", with ".join(
        ["the topic must be made", " and ".join(having)] if having else ["the topic must be made"]
    )
    return Step("exists", False, by, says, needs, NeededChange(True, partitions, properties))


def _mode(question: ListingRequest, topic: TopicName, known: Known) -> Step:
    mode, domain = question.mode.name.lower(), topic.domain
    if topic.is_system:
        return Step("mode", False, None, "it is a system topic, which no listing has", None)
    if question.mode.lists(domain):
        return Step("mode", True, None, f"the mode {mode} has {domain} topics")
    needs = "the mode all, or that of its domain"
    if not known.exists:
        needs += f"; {_OTHER[domain]}://{topic.namespace}/{topic.local} is another topic"
    return Step("mode", False, None, f"the mode {mode} has no {domain} topics", needs)


def _selecting(pipeline: Pipeline, question: ListingRequest) -> dict[str, str]:
    """The properties of the question that select topics."""
    keys = pipeline.options.selecting_keys
    return {key: value for key, value in question.properties.items() if key in keys}


def _properties(pipeline: Pipeline, question: ListingRequest, known: Known) -> Step:
    """Whether the selecting properties of the question match the topic's."""
    wanted = _selecting(pipeline, question)
    ignored = ", ".join(sorted(set(question.properties) - wanted.keys()))
    said = f"; nothing selects by {ignored}" if ignored else ""
    if not wanted:
        return Step("properties", True, None, f"no property of the question selects topics{said}")
    own: Mapping[str, str] | None = known.details.get("properties")
    if own is None and known.record is not None:
        own = known.record.properties
    if not known.exists or own is None:
        return Step("properties", None, None, f"the properties of the topic are not known{said}")
    own = dict(own)
    others = {key: value for key, value in wanted.items() if own.get(key) != value}
    if not others:
        return Step("properties", True, None, f"the topic has all that select{said}")
    texts = [
        f"{key}={value} is asked, and the topic has {f'{key}={own[key]}' if key in own else f'no {key}'}"
        for key, value in sorted(others.items())
    ]
    needs = " and ".join(f"the property {key}={value} of the topic" for key, value in sorted(others.items()))
    change = None if known.record is None else NeededChange(properties=others)
    return Step("properties", False, None, "; ".join(texts) + said, f"{needs}, or another question", change)


def _pattern(question: ListingRequest, topic: TopicName) -> Step:
    pattern = question.pattern
    assert pattern is not None
    name = f"{topic.namespace}/{topic.local}"
    if not pattern.supported:
        return Step(
            "pattern",
            None,
            None,
            f"this server does not apply the pattern ({pattern.reason}): the client does",
        )
    if pattern.matches(str(topic)):
        return Step("pattern", True, None, f"it matches {name}")
    return Step(
        "pattern", False, None, f"it does not match {name}", f"a pattern that matches {name} as a whole"
    )


async def _masks(pipeline: Pipeline, question: ListingRequest, topic: TopicName, known: Known) -> Step:
    """The names of the topic that the masks show; a mask that hides all of them alone is named alone.

    Of a topic that is not there they are asked by its name, since one that is made is hidden no less.
    """
    columns = list(known.masked(topic)) if known.exists and topic.partition < 0 else []
    names = columns[0][:_MOST_NAMES] if columns else pa.array([str(topic)], pa.large_string())
    steps: list[ChainStep] = []
    try:
        mask = await pipeline.dispatcher.mask_hook.visible(question, names, steps=steps)
    except ListingFailed as failure:
        return _failed("masks", failure, "the plugin must answer")
    shown = len(names) if mask is None else mask.true_count
    if shown:
        plugins = ", ".join(each.plugin for each in steps)
        return Step("masks", True, plugins, f"{shown} of {counted(len(names), 'name')} shown")
    hiding = [each.plugin for each in steps if each.shown == 0] or [
        each.plugin for each in steps if each.shown != len(names)
    ]
    plugins = ", ".join(hiding)
    return Step(
        "masks", False, plugins, "it is hidden from this client", f"{plugins} must show it to this client"
    )


def _failed(step: str, failure: ListingFailed, needs: str = "an answer in place of the error") -> Step:
    """A step without an answer; a listing that the shrink guard holds has a step of its own."""
    if failure.reason == HELD:
        step, needs = "held", "that it is accepted, or that some time passes"
    return Step(step, False, failure.plugin, failure.message, needs, fails=True)


async def _listing(
    pipeline: Pipeline, question: ListingRequest, topic: TopicName
) -> tuple[bool | None, Step]:
    """The step of the listing itself: whether the answer has a name of the topic."""
    try:
        answer = await pipeline.answer(replace(question, page=None, wants=frozenset(), topics_hash=None))
    except ListingFailed as failure:
        return None, _failed("listing", failure)
    try:
        assert answer.selection is not None  # the question has no hash
        base = topic.partitioned_name
        literal = re.escape(f"{base.namespace}/{base.local}")
        only = compile_pattern(
            literal, max_length=2 * len(literal), remember=False
        )  # a name has no bound of patterns
        names = (await pipeline.workers.matching(question.asker, answer.selection, only)).names
        own = pc.starts_with(names, f"{topic.domain}://") if base == topic else pc.equal(names, str(topic))
        listed = pc.any(own).as_py() is True
    finally:
        answer.release()
    if listed:
        return True, Step("listing", True, answer.lister, "the answer has it")
    return False, Step(
        "listing", False, answer.lister, f"what {answer.lister} lists for this question lacks it"
    )
