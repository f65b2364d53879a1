"""docs/reference/metrics.md has every metric, and the identities that it promises hold."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from broker_core import TopicListingResult, hookimpl
from broker_core.access.connection_credentials import Sessions
from broker_core.broker.kafka_gateway import KafkaGateway
from broker_core.client import ServerRefused
from broker_core.guards import ShrinkGuard
from broker_core.memory.permits import Permits
from broker_core.metrics.labels import AUTHENTICATIONS, CLOSURES, REFUSALS
from broker_core.metrics.metrics import PREFIX
from broker_core.plugin_api.hookspecs import HookSpecs
from broker_core.quantities import ListenAddress
from broker_core.settings import (
    KafkaUpstreamSettings,
    ShrinkGuardSettings,
    UpstreamSettings,
    UpstreamSnapshotsSettings,
)
from broker_core.testing import Server, serve
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamOptions, show_upstream
from broker_core_postgres.changes.listen_notify import CHANNEL
from broker_core_postgres.schema.roles import ROLES
from tests.docs.pages import ROOT, all_pages, code_in, read, tables

PAGE = "reference/metrics.md"
SUFFIX = {"counter": "_total", "info": "_info"}


class Mixed:
    """Answers, fails, lies and hides, as the consumer's properties say."""

    @hookimpl
    async def broker_core_list_topics(self, namespace: Any, properties: Any) -> Any:
        match properties.get("do"):
            case "raise":
                raise RuntimeError("as asked")
            case "lie":
                return TopicListingResult.success([f"persistent://{namespace}/a"], filtered=True)
            case "foreign":
                return TopicListingResult.success(["persistent://public/foreign/a"])
        return None

    @hookimpl
    def broker_core_listing_served(self, outcome: Any) -> None:
        assert outcome.outcome


@pytest.fixture
async def server(tmp_path: Path) -> Any:
    async with serve(
        {"mixed": Mixed()},
        topics=["persistent://public/default/a", "persistent://public/default/b"],
        settings={
            "log": {"access": {"path": tmp_path / "access.jsonl"}},
            "kafka": {"listen": ListenAddress("127.0.0.1", 0)},
        },
    ) as running:
        # A gateway has more of them.
        snapshots = UpstreamSnapshotsSettings(mode="auto")
        settings = UpstreamSettings(service_url="pulsar://127.0.0.1:1", snapshots=snapshots)
        metrics = running.broker.pipeline.metrics
        cluster = UpstreamCluster(UpstreamOptions(settings), metrics, permits=Permits())
        show_upstream(metrics, lambda: cluster)
        kafka = KafkaUpstreamSettings(bootstrap_servers=("127.0.0.1:1",))
        KafkaGateway(kafka, metrics, Permits(), ShrinkGuard(ShrinkGuardSettings()), Sessions())
        yield running


def registry_of(server: Server) -> CollectorRegistry:
    return server.broker.pipeline.metrics.registry


async def ask_everything(server: Server) -> None:
    await server.list("public/default")
    first = await server.list("public/default", pattern="public/default/a.*")
    await server.list("public/default", pattern="public/default/a.*", topics_hash=first.topics_hash)
    await server.list("public/default", pattern="(?!a).*")
    await server.list("public/default", pattern="nothing", properties={"do": "lie"})
    for bad in ("raise", "foreign", *(["raise"] * 6)):
        with pytest.raises(ServerRefused):
            await server.list("public/default", properties={"do": bad})
    with pytest.raises(ServerRefused):
        await server.list("nonsense")


def documented() -> dict[str, tuple[str, set[str]]]:
    """Name to type and labels."""
    return {
        code_in(name)[0]: (kind, set(code_in(labels)))
        for table in tables(PAGE)
        if table.columns == ("metric", "type", "labels", "meaning")
        for name, kind, labels, _ in table.rows
    }


def real(registry: CollectorRegistry) -> dict[str, tuple[str, set[str]]]:
    """The metrics of a registry after everything was asked."""
    found: dict[str, tuple[str, set[str]]] = {}
    for family in registry.collect():
        if not family.name.startswith("process_"):
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            labels |= set(getattr(family, "_labelnames", ()))
            found[family.name + SUFFIX.get(family.type, "")] = (family.type, labels)
    for collector in registry._collector_to_names:
        if names := getattr(collector, "_labelnames", None):
            found[collector._name + SUFFIX.get(collector._type, "")][1].update(names)  # type: ignore[attr-defined]
    return found


async def test_every_metric_is_documented_with_type_and_labels(server: Server) -> None:
    await ask_everything(server)
    assert documented() == real(registry_of(server))


async def test_every_name_of_a_metric_in_the_pages_is_one(server: Server) -> None:
    await ask_everything(server)
    families = list(registry_of(server).collect())
    known = {sample.name for family in families for sample in family.samples} | set(documented())
    known |= {name for name in vars(HookSpecs) if name.startswith(PREFIX)} | {"broker_core_serve"}
    known |= {*ROLES, CHANNEL}
    for page in all_pages():
        # The plugins' own are their pages' tests' to know, and those of the plugins that pages write are nobody's.
        for name in re.findall(
            r"\bbroker_core_(?!postgres|spark|explorer|mine|region_lists|cached)[a-z_]+[a-z]\b", read(page)
        ):
            assert name in known or name.removesuffix("_bucket") in known, f"{page}: {name}"


class Scrape:
    """The values of one moment."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._samples = [
            (sample.name.removeprefix(PREFIX), sample.labels, sample.value)
            for family in registry.collect()
            for sample in family.samples
        ]

    def sum(self, metric: str, **labels: str) -> float:
        return sum(
            value for name, own, value in self._samples if name == metric and labels.items() <= own.items()
        )

    def values(self, metric: str, label: str) -> set[str]:
        return {own[label] for name, own, _ in self._samples if name == metric}


async def test_the_identities_hold(server: Server) -> None:
    await ask_everything(server)
    now = Scrape(registry_of(server))
    requests = "listing_requests_total"
    assert now.sum(requests) == now.sum("listing_seconds_count") > 0
    assert now.sum(requests, outcome="error") == now.sum("listing_rejected_total") > 0
    answered = now.sum(requests, outcome="served") + now.sum(requests, outcome="unchanged")
    assert answered == now.sum("listing_names_count") > 0
    for reason in now.values("listing_rejected_total", "reason"):
        sent = now.sum("listing_errors_sent_total", reason=reason)
        assert now.sum("listing_rejected_total", reason=reason) <= sent
    called = {"plugin": "mixed", "hook": "list_topics"}
    refused = now.sum("listing_rejected_total", reason="plugin_breaker")
    calls = now.sum("listing_plugin_calls_total", **called)
    assert calls == now.sum("listing_plugin_seconds_count", **called) + refused
    assert refused > 0


#: What is in each source that passes a reason, or has one of those that are known.
_MAY_HAVE_REASONS = re.compile(rf'\breason=|"(?:{"|".join([*REFUSALS, *CLOSURES])})"')


@cache
def texts() -> tuple[set[tuple[str | None, str]], set[str]]:
    """What the sources with reasons pass under names, and all their texts that are single words."""
    passed, words = set(), set()
    for text in (source.read_text(encoding="utf-8") for source in (ROOT / "broker_core").rglob("*.py")):
        if not _MAY_HAVE_REASONS.search(text):  # a syntax tree takes a hundred times as long
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
                if isinstance(node.value.value, str):
                    passed.add((node.arg, node.value.value))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                words.add(node.value)
    return passed, words


def reasons(heading: str) -> set[str]:
    (table,) = [one for one in tables(PAGE) if one.heading == heading and one.columns[0] == "reason"]
    return {code_in(row[0])[0] for row in table.rows}


def test_every_reason_of_a_refused_listing_is_documented() -> None:
    shown = reasons("Reasons of a refused listing")
    # PluginLoadError and others use the same keyword for texts with blanks, which are no labels.
    used = {text for keyword, text in texts()[0] if keyword == "reason" and text.isidentifier()}
    used -= reasons("Reasons of a refused client")  # the log names those so
    assert used <= shown == set(REFUSALS), "REFUSALS are there from the start, with 0"
    assert shown <= texts()[1], "documented, but nowhere in the sources"


def test_every_reason_of_a_refused_client_is_documented() -> None:
    let_in = {"ok", "anonymous", "renewed"}
    assert reasons("Reasons of a refused client") == {outcome for _, outcome in AUTHENTICATIONS} - let_in


def test_every_reason_of_a_closed_connection_is_documented() -> None:
    closed = set()
    for source in (ROOT / "broker_core").rglob("*.py"):
        closed |= set(re.findall(r"_close_for\(\"(\w+)\"", source.read_text(encoding="utf-8")))
    shown = reasons("Reasons of a closed connection")
    assert closed <= shown == set(CLOSURES), "CLOSURES are there from the start, with 0"
    assert shown <= texts()[1]
