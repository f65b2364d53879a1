"""The events of a build, against the JSON schemas of OpenLineage that `tests/vectors/openlineage` has."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]
from openlineage.client.serde import Serde
from referencing import Registry, Resource

from broker_core_spark.batch.build_result import BuildResult
from broker_core_spark.batch.builder import Builder
from broker_core_spark.batch.lineage.build_events import BuildEvents
from tests.support.spark_catalogues import result_of

SCHEMAS = {
    schema["$id"]: schema
    for schema in (json.loads(path.read_text()) for path in Path("tests/vectors/openlineage").glob("*.json"))
}
PARENT = "airflow/nightly.build/0190b7ee-7a3c-7bbb-8000-000000000001"
ROWS = [{"namespace": "a/b", "pattern": ".*"}, {"namespace": "a/b", "pattern": "(?=ahead)"}]


def check(event: dict[str, Any]) -> None:
    """Check an event, and each of its facets by the schema that it names."""
    registry: Registry[Any] = Registry().with_resources(
        (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
    )

    def validate(value: Any, schema: str) -> None:
        Draft202012Validator({"$ref": schema}, registry=registry, format_checker=FormatChecker()).validate(
            value
        )

    (of_events,) = (name for name in SCHEMAS if name.endswith("/OpenLineage.json"))
    validate(event, of_events)
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    facets = [
        facet
        for holder in holders
        for kind in ("facets", "inputFacets", "outputFacets")
        for facet in holder.get(kind, {}).values()
    ]
    assert facets
    for facet in facets:
        validate(facet, facet["_schemaURL"])


def told(event: Any) -> dict[str, Any]:
    """An event as it is sent, after its check."""
    found: dict[str, Any] = json.loads(Serde.to_json(event))
    check(found)
    return found


@pytest.fixture
def events() -> BuildEvents:
    return BuildEvents(
        namespace="prod",
        run="0123456789ab",
        store="s3://listings/prod",
        catalogue="postgresql://u@db/topics?password=secret",
        patterns=["patterns.jsonl", "table:always"],
        export_parquet="s3://lake/totals.parquet",
        export_matches="s3://lake/matches",
        history="s3://lake/history",
        parent=PARENT,
    )


@pytest.fixture
def result(tmp_path: Path) -> BuildResult:
    names = [f"t{number}" for number in range(7)]
    return replace(
        result_of(tmp_path / "store", ROWS, {"a/b": names}),
        builder=Builder("ann", "host1", 7, "run1", "0.1", "4.1.0", "3.12.0"),
        published=datetime(2026, 3, 1, 10, 15, tzinfo=UTC),
    )


def test_a_build_that_publishes(events: BuildEvents, result: BuildResult) -> None:
    started, completed = told(events.started()), told(events.completed(result))
    assert (started["eventType"], completed["eventType"]) == ("START", "COMPLETE")
    assert started["run"]["runId"] == completed["run"]["runId"]
    assert started["job"] == completed["job"]
    assert (started["job"]["namespace"], started["job"]["name"]) == ("prod", "spark build s3://listings/prod")
    assert "secret" not in json.dumps([started, completed])
    parent = completed["run"]["facets"]["parent"]
    assert (parent["job"]["namespace"], parent["job"]["name"]) == ("airflow", "nightly.build")
    assert parent["run"]["runId"] == PARENT[-36:]
    tags = {tag["key"]: tag["value"] for tag in completed["run"]["facets"]["tags"]["tags"]}
    assert (tags["topics"], tags["matches"], tags["refused"], tags["number"]) == ("7", "7", "1", "1")
    assert "coverage" in tags
    assert completed["run"]["facets"]["processing_engine"]["version"] == "4.1.0"
    assert [(one["namespace"], one["name"]) for one in completed["inputs"]] == [
        ("postgres://db:5432", "topics.broker_core.batch_v1_topics"),
        ("file", str(Path.cwd() / "patterns.jsonl")),
        ("spark", "always"),
    ]
    assert completed["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 7
    outputs = {one["name"]: one for one in completed["outputs"]}
    counts = {name: one["outputFacets"]["outputStatistics"]["rowCount"] for name, one in outputs.items()}
    assert counts == {"prod": 1, "totals.parquet": 1, "matches": 7, "history": 1}
    assert outputs["prod"]["outputFacets"]["outputStatistics"]["fileCount"] == len(result.manifest.files)
    assert {one["facets"]["version"]["datasetVersion"] for one in outputs.values()} == {result.generation}
    assert "topic" in {one["name"] for one in outputs["matches"]["facets"]["schema"]["fields"]}


def test_a_build_that_does_not(events: BuildEvents) -> None:
    failed = told(events.failed(ValueError("no such file")))
    aborted = told(events.failed(KeyboardInterrupt(), aborted=True))
    assert (failed["eventType"], aborted["eventType"]) == ("FAIL", "ABORT")
    assert failed["run"]["facets"]["errorMessage"]["message"] == "no such file"
    assert "errorMessage" not in aborted["run"]["facets"]


def test_what_is_not_written_is_no_dataset(events: BuildEvents) -> None:
    less = replace(
        events, parent=None, export_parquet=None, export_matches=None, history=None, patterns=["p"]
    )
    found = told(less.started())
    assert [one["name"] for one in found["outputs"]] == ["prod"]
    assert "parent" not in found["run"].get("facets", {})
