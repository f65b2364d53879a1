"""The metrics of the plugin: counters, and what is served."""

from __future__ import annotations

from random import Random

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from broker_core.testing import Server
from broker_core_spark.serving.metrics import HOUR, PREFIX, AnswerCounts
from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS
from tests.spark.test_exact_answers import serving
from tests.support.spark_model import publish


def scraped(server: Server) -> dict[str, float]:
    text = generate_latest(server.broker.pipeline.metrics.registry).decode()
    return {
        sample.name.removeprefix(PREFIX)
        + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(PREFIX)
    }


async def test_what_is_served_is_measured() -> None:
    random = Random(3)
    async with serving() as (server, plugin, model, uri):
        names = [f"persistent://public/default/t-{number}" for number in range(20)]
        await model.fill(names, random)
        before = scraped(server)
        assert before["refused"] == 0  # nothing is published yet, which is no fault
        assert "questions" not in before
        assert {f"passed_total {reason}" for reason in PASS_REASONS} <= set(before)

        published = await publish(uri, model, [("public/default", mode, None, {}) for mode in _modes()])
        await plugin.lister.refresher.refresh()
        answer = await server.list("public/default")
        await server.list("public/default", topics_hash=answer.topics_hash)
        await server.list("public/default", pattern="public/default/t-1.*")
        await model.delete(random.choice(sorted(model.topics)))
        await server.list("public/default")
        now = scraped(server)
        assert now[f"generation_info changes {published.generation} 1"] == 1
        assert (now["questions"], now["refused"]) == (3, 0)
        assert now["topics"] == plugin.lister.refresher.served.generation.manifest.topics  # type: ignore[union-attr]
        assert now["mapped_bytes"] > 0
        assert 0 <= now["generation_age_seconds"] < 3600
        assert (now["answers_total served"], now["answers_total unchanged"]) == (2, 1)
        assert (now["passed_total not_registered"], now["checks_total ok"]) == (1, 1)
        assert (now["last_hour_questions answered"], now["last_hour_questions passed"]) == (3, 1)
        assert now["overlay_namespaces"] == 1
        assert 1 <= now["overlay_names"] <= 3
        assert now["overlays_ended"] == 0
        assert now["kept_answers_bytes"] > 0
        assert now["index_bytes"] == 0  # all of a namespace is in one segment


def _modes() -> list:  # type: ignore[type-arg]
    from broker_core.names import Mode

    return list(Mode)


def test_every_reason_is_there_from_the_start() -> None:
    assert AnswerCounts().passed == dict.fromkeys(PASS_REASONS, 0)


def test_only_the_last_hour_is_told() -> None:
    now = 1e6
    tally = AnswerCounts(lambda: now)
    assert tally.last_hour() == (0, 0)
    tally.answered("served")
    tally.answered("unchanged")
    tally.passed_on("not_registered")
    assert tally.last_hour() == (2, 1)
    now += HOUR / 2
    tally.passed_on("gap")
    assert tally.last_hour() == (2, 2)
    now += HOUR / 2 + 60
    assert tally.last_hour() == (0, 1)
    now += 10 * HOUR
    assert tally.last_hour() == (0, 0)
    assert tally.answers == {"served": 1, "unchanged": 1, "stale": 0}
    assert (tally.passed["not_registered"], tally.passed["gap"]) == (1, 1)
