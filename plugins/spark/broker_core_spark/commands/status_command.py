"""``broker-core spark status``: the published and the served generation, and its share of the traffic."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import RunningBroker, examples, print_json, print_table
from broker_core_spark.commands.store_option import StoreOption, StoreOptions, chosen_store

if TYPE_CHECKING:
    from broker_core_spark.store import Store

__all__ = ["EXAMPLES", "read_metrics", "read_problems", "status"]

EXAMPLES: Final = examples(
    "broker-core spark status --config broker-core.toml",
    "broker-core spark status --store s3://listings/prod --broker http://127.0.0.1:8080 --json",
)
_PREFIX: Final = "broker_core_spark_"
#: Metrics without labels that are shown as they are.
_NUMBERS: Final = (
    "overlay_names",
    "overlay_namespaces",
    "overlays_ended",
    "mapped_bytes",
    "questions",
    "topics",
)


def status(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", show_default=False)] = False,
    store: StoreOption = None,
    store_options: StoreOptions = None,
    broker: RunningBroker,
) -> None:
    """Show the published generation and, of the running broker, the one it serves and the traffic of the last hour.

    Without a running broker it shows what the store knows.
    """
    from broker_core_spark.store import activities

    chosen = chosen_store(store, store_options)
    report: dict[str, Any] = {"published": _published(chosen), "under_way": activities(chosen)}
    try:
        report["served"] = read_metrics(broker.get("/metrics"))
        if report["served"]["refused"]:
            report["served"]["problems"] = read_problems(broker.get("/plugins"))
        report["broker"] = None
    except BrokerCoreError as error:
        report["served"], report["broker"] = None, str(error)
    if as_json:
        print_json(report)
        return
    print_table(["published", ""], _rows(report["published"]))
    for mark in report["under_way"]:
        typer.echo(f"{mark['kind']} {'under way' if mark['live'] else 'that has died'}: {mark['owner']}")
    if report["served"] is None:
        typer.echo(f"nothing is known of a running broker: {report['broker']}")
    else:
        print_table(["served", ""], _rows(report["served"]))


def _published(chosen: Store) -> dict[str, Any]:
    """The state of the published generation in the store."""
    from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration
    from broker_core_spark.store import PublishedPointer, read_build_record, read_manifest, read_pointers

    found: dict[str, Any] = {"store": chosen.uri, "generation": None}
    every = list(read_pointers(chosen))
    unreadable = [str(pointer) for pointer in every if not isinstance(pointer, PublishedPointer)]
    if unreadable:
        found["unreadable_pointers"] = unreadable
        if not isinstance(every[0], PublishedPointer):
            found["error"] = (
                "the newest pointer cannot be read: broker-core spark use GENERATION publishes anew"
            )
    published = next((pointer for pointer in every if isinstance(pointer, PublishedPointer)), None)
    if published is None:
        return found
    found |= {
        "generation": published.generation,
        "number": published.number,
        "published": published.when.isoformat(),
        "age_seconds": round(max(0.0, (datetime.now(UTC) - published.when).total_seconds()), 1),
    }
    try:
        manifest = read_manifest(chosen, published.generation)
    except (InvalidGeneration, NoSuchGeneration) as error:
        return found | {"error": str(error)}
    return (
        found
        | _built(read_build_record(chosen, published.generation))
        | {
            "catalogue": manifest.catalogue_id,
            "static": manifest.static,
            "namespaces": len(manifest.namespaces),
            "questions": manifest.question_count,
            "topics": manifest.topics,
            "bytes": sum(file.size for file in manifest.files),
        }
    )


def _built(record: Mapping[str, Any] | None) -> dict[str, Any]:
    """The builder, times and sources of a build. Parts that the record does not have are left out."""
    if record is None:
        return {}
    builder, seconds, differences = (
        value if isinstance(value := record.get(key), dict) else {}
        for key in ("builder", "seconds", "differences")
    )
    found = {
        "built_by": f"{builder['user']}@{builder['host']}" if {"user", "host"} <= set(builder) else None,
        "build_began": record.get("began"),
        "build_seconds": seconds.get("total"),
        "built_from": record.get("catalogue"),
        "built_patterns": record.get("patterns"),
        "build_coverage": record.get("coverage"),
        "questions_added": differences.get("added"),
        "questions_removed": differences.get("removed"),
        "matches": record.get("matches"),
    }
    return {key: value for key, value in found.items() if isinstance(value, (str, int, float))}


def read_metrics(text: str) -> dict[str, Any]:
    """The plugin's metrics in the broker's metrics. Raises :exc:`BrokerCoreError` if there are none."""
    from prometheus_client.parser import text_string_to_metric_families

    try:
        samples = [
            sample
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name.startswith(_PREFIX) and not sample.name.endswith("_created")
        ]
        values = {
            (sample.name.removeprefix(_PREFIX), *sample.labels.values()): sample.value for sample in samples
        }
        served = next((sample.labels for sample in samples if sample.name == f"{_PREFIX}generation_info"), {})
        if ("refused",) not in values:
            raise BrokerCoreError("the broker does not run this plugin: its metrics have nothing of it")
        answered = values.get(("last_hour_questions", "answered"), 0.0)
        questions = answered + values.get(("last_hour_questions", "passed"), 0.0)
        return {
            "generation": served.get("generation"),
            "number": int(served["number"]) if "number" in served else None,
            "age_seconds": _number(values.get(("generation_age_seconds",))),
            "follows": served.get("follows"),
            "state_age_seconds": _number(values.get(("state_age_seconds",))),
            "last_hour_questions": int(questions),
            "last_hour_coverage": round(answered / questions, 4) if questions else None,
            **{key: _number(values.get((key,))) for key in _NUMBERS},
            "refused": bool(values["refused",]),
            "passed": {
                name[1]: int(count) for name, count in values.items() if name[0] == "passed_total" and count
            },
        }
    except (ValueError, OverflowError) as error:  # no number, or one that is no count
        raise BrokerCoreError(f"the broker's metrics cannot be read: {error!s:.300}") from error


def read_problems(text: str) -> list[str]:
    """Reasons from ``/plugins`` why the published generation is not served."""
    try:
        return [
            # A lone surrogate cannot be printed.
            str(problem).encode(errors="replace").decode()
            for entry in json.loads(text)["plugins"]
            if entry["name"] == "spark"
            for problem in entry["problems"]
        ]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BrokerCoreError("the broker's /plugins cannot be read") from error


def _number(value: float | None) -> float | int | None:
    if value is None or math.isnan(value):
        return None
    return int(value) if value == int(value) else round(value, 1)


def _rows(report: dict[str, Any]) -> list[tuple[str, object]]:
    return [(key.replace("_", " "), _shown(key, value)) for key, value in report.items()]


def _shown(key: str, value: Any) -> object:
    if value in (None, {}, []):
        return "-"
    if key in ("last_hour_coverage", "build_coverage"):
        return f"{value:.2%}"
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return "; ".join(map(str, value)) if isinstance(value, list) else value
