"""docs/reference/spark.md is what the plugin is: settings, commands, sources, results, metrics, reasons."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from random import Random

import pytest
import yaml  # type: ignore[import-untyped]  # ships none, and comes with myst-parser
from prometheus_client.registry import CollectorRegistry

from broker_core.names import Mode
from broker_core_spark.batch.build_result import HISTORY_SCHEMA, TOTALS_SCHEMA
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.questions.load_questions import MAX_QUESTIONS, load_questions
from broker_core_spark.batch.questions.parse_question_row import COUNTED_KEYS, ROW_KEYS
from broker_core_spark.batch.reports.build_metrics import METRICS
from broker_core_spark.batch.spark.java_home import VERSIONS
from broker_core_spark.batch.spark.spark_session import LOCAL_SETTINGS
from broker_core_spark.serving.metrics import PREFIX
from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS
from tests.docs.pages import ROOT, all_pages, blocks, code_in, named, read, rows, tables
from tests.spark.test_exact_answers import serving
from tests.support.files import file_with
from tests.support.spark_model import publish

PAGE = "reference/spark.md"


# -- what goes in and what comes out


def test_the_keys_of_a_pattern_are_all_there() -> None:
    assert set(named(PAGE, "Pattern sources", "key")) == set(ROW_KEYS)
    text = read(PAGE)
    assert all(f"`{key}`" in text for key in COUNTED_KEYS)
    assert f"At most {MAX_QUESTIONS:,} rows." in text


@pytest.mark.parametrize("suffix", ["jsonl", "toml"])
def test_the_patterns_of_the_page_can_be_read(suffix: str, tmp_path: Path) -> None:
    (text,) = [
        block.text for block in blocks(PAGE) if block.text.startswith("[[" if suffix == "toml" else "{")
    ]
    file = file_with(tmp_path / f"patterns.{suffix}", text)
    (question,) = load_questions(str(file), property_keys=["region"]).questions
    assert (question.namespace, question.mode) == ("public/default", Mode.PERSISTENT)
    assert question.selector.properties == ((("region", "eu"),) if suffix == "toml" else ())


def test_the_keys_of_a_result_are_all_there() -> None:
    source = inspect.getsource(BuildResult.record)
    real = re.findall(r'^            "(\w+)":', source, re.MULTILINE)
    assert sorted(named(PAGE, "Result of a build", "key")) == sorted(real)


def test_the_columns_of_the_exported_table_are_all_there() -> None:
    (text,) = re.findall(
        r"^`--export-parquet` writes one row a question: (.*?)\n\n", read(PAGE), re.MULTILINE | re.DOTALL
    )
    assert code_in(text) == TOTALS_SCHEMA.names


def test_the_metrics_of_a_build_are_all_there() -> None:
    shown = {code_in(row["metric"])[0]: row["meaning"] for row in rows(PAGE, "Metrics of a build", "metric")}
    assert shown == {f"broker_core_spark_build_{name}": meaning for name, meaning in METRICS.items()}


def test_the_columns_of_the_history_are_all_there() -> None:
    (text,) = re.findall(r"^The columns of `builds`: (.*?), as in", read(PAGE), re.MULTILINE | re.DOTALL)
    assert code_in(text) == HISTORY_SCHEMA.names


def test_the_parameters_of_the_function_are_all_there_with_their_defaults() -> None:
    parameters = inspect.signature(build).parameters
    shown = {code_in(row["parameter"])[0]: row["default"] for row in rows(PAGE, "Python", "parameter")}
    assert list(shown) == list(parameters)
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty:
            assert shown[name] == "required"
        else:
            assert shown[name] == f"`{parameter.default}`"


def test_the_releases_of_java_are_named() -> None:
    release = " or ".join(map(str, VERSIONS))
    for page in (PAGE, "tutorial/spark.md"):
        assert f"JRE {release}" in read(page)


# -- metrics and reasons


async def real_metrics() -> dict[str, tuple[str, set[str]]]:
    """Name to type and labels, of a plugin that serves."""
    async with serving() as (server, plugin, model, uri):
        await model.fill([f"persistent://public/default/t-{number}" for number in range(3)], Random(1))
        await publish(uri, model, [("public/default", Mode.ALL, None, {})])
        await plugin.lister.refresher.refresh()
        await server.list("public/default", mode=Mode.ALL)
        return of_registry(server.broker.pipeline.metrics.registry)


def of_registry(registry: CollectorRegistry) -> dict[str, tuple[str, set[str]]]:
    suffixes = {"counter": "_total", "info": "_info"}
    return {
        family.name + suffixes.get(family.type, ""): (
            family.type,
            {label for sample in family.samples for label in sample.labels},
        )
        for family in registry.collect()
        if family.name.startswith(PREFIX)
    }


async def test_every_metric_is_there_with_type_and_labels() -> None:
    real = await real_metrics()
    documented = {
        code_in(row["metric"])[0]: (row["type"], set(code_in(row["labels"])))
        for row in rows(PAGE, "Metrics", "metric")
    }
    assert documented == real
    for page in all_pages():
        for name in re.findall(rf"\b{PREFIX}[a-z_]+[a-z]\b", read(page)):
            assert name in real or name.startswith(f"{PREFIX}build"), f"{page}: {name}"


def test_every_reason_is_there() -> None:
    assert sorted(named(PAGE, "Reasons to pass", "reason")) == sorted(PASS_REASONS)


# -- the how-tos


def test_the_messages_in_the_table_of_failures_are_the_sources_own() -> None:
    folder = ROOT / "plugins" / "spark" / "broker_core_spark"
    sources = re.sub(
        r'"\s*f?"', "", "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    )
    page = "how-to/spark-operate.md"
    (table,) = [table for table in tables(page) if table.columns[0] == "you see"]
    foreign = {"No space left on device", "line 7:"}  # the system's; with a number of its own
    for row in table.rows:
        for text in code_in(row[0]):
            for part in filter(None, (part.strip(" .") for part in text.split("..."))):
                words = part.replace("Java 17 or Java 21", "{_wanted()}").removeprefix("passed ")
                known = words.strip(" ,{}") in sources or words.partition("{")[0].strip() in sources
                assert part.strip(", ") in foreign or known, text


def test_the_alerts_are_of_metrics_that_exist() -> None:
    (block,) = [block for block in blocks("how-to/spark-operate.md") if block.language == "yaml"]
    (group,) = yaml.safe_load(block.text)["groups"]
    shown = set(named(PAGE, "Metrics", "metric"))
    for rule in group["rules"]:
        assert set(re.findall(rf"{PREFIX}\w+", rule["expr"])) <= shown, rule["alert"]


def test_settings_of_a_session_are_the_ones_that_it_is_given() -> None:
    shown = {
        code_in(table_row[0])[0]: code_in(table_row[1])
        for table in tables("how-to/spark-submit.md")
        if table.columns == ("setting", "value", "why")
        for table_row in table.rows
    }
    for key in ("spark.driver.memory", "spark.sql.execution.arrow.maxRecordsPerBatch"):
        assert shown[key][0] == LOCAL_SETTINGS[key]
