"""docs/reference/spark.md is what the plugin is: settings, commands, sources, results, metrics, reasons."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # ships none, and comes with myst-parser
from prometheus_client.registry import CollectorRegistry

from broker_core.cli.plugin_commands import commands_of
from broker_core.names import Mode
from broker_core_spark.batch.build_result import HISTORY_SCHEMA, TOTALS_SCHEMA
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.questions.load_questions import MAX_QUESTIONS, load_questions
from broker_core_spark.batch.questions.parse_question_row import COUNTED_KEYS, ROW_KEYS
from broker_core_spark.batch.reports.build_metrics import METRICS
from broker_core_spark.batch.spark.java_home import VERSIONS
from broker_core_spark.batch.spark.spark_session import LOCAL_SETTINGS
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.serving.metrics import PREFIX
from broker_core_spark.serving.pass_to_next_lister import PASS_REASONS
from broker_core_spark.settings import SparkSettings
from tests.docs.pages import ROOT, all_pages, blocks, code_in, headings, read, tables
from tests.spark.test_exact_answers import serving
from tests.support.spark_model import publish

PAGE = "reference/spark.md"
COMMON = {"--config", "--debug", "--help"}


def rows(heading: str, first_column: str) -> list[dict[str, str]]:
    return [
        dict(zip(table.columns, row, strict=True))
        for table in tables(PAGE)
        if table.heading == heading and table.columns[0] == first_column
        for row in table.rows
    ]


def named(heading: str, first_column: str) -> list[str]:
    """What stands in backticks in the first column, in order."""
    return [name for row in rows(heading, first_column) for name in code_in(row[first_column])]


# -- settings


def test_every_setting_is_there() -> None:
    assert set(named("Settings", "key")) == set(SparkSettings.model_fields)


@pytest.mark.parametrize("key", SparkSettings.model_fields)
def test_a_default_is_the_default(key: str) -> None:
    field = SparkSettings.model_fields[key]
    (row,) = [row for row in rows("Settings", "key") if code_in(row["key"]) == [key]]
    assert row["type"]
    assert row["meaning"].endswith((".", "`)."))
    if field.is_required():
        assert row["default"] == "required"
        return
    default = field.get_default(call_default_factory=True)
    if default is None:
        assert row["default"] == "none"
        return
    (text,) = code_in(row["default"])
    written = tomllib.loads(f"value = {text}")["value"]
    assert getattr(SparkSettings.model_validate({"store": "a", key: written}), key) == default
    choices = re.search(r"Literal\[(.*?)\]", str(field.annotation))
    if choices:
        assert code_in(row["type"]) == [f'"{name}"' for name in re.findall(r"'([^']+)'", choices[1])]


# -- commands


def commands() -> dict[str, Any]:
    """Every command by what is typed."""

    def walk(command: Any, name: str) -> dict[str, Any]:
        below = getattr(command, "commands", None)
        if not below:
            return {name: command}
        return {key: value for word in below for key, value in walk(below[word], f"{name} {word}").items()}

    return walk(commands_of("spark", SparkPlugin()), "broker-core spark")


COMMANDS = commands()


def test_every_command_has_a_section() -> None:
    shown = [code_in(text)[0] for text in headings(PAGE) if text.startswith("`broker-core ")]
    assert sorted(shown) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_and_arguments_of_a_command_are_all_there(command: str) -> None:
    parameters = COMMANDS[command].params
    by_option = {
        parameter.opts[0]: parameter for parameter in parameters if parameter.param_type_name == "option"
    }
    shown = {re.findall(r"`(--[a-z-]+)", row["option"])[0]: row for row in rows(f"`{command}`", "option")}
    assert set(shown) == set(by_option) - COMMON
    for option, row in shown.items():
        parameter = by_option[option]
        assert row["meaning"].endswith(".")
        assert (row["default"] == "required") == parameter.required, option
        if parameter.default is False:
            assert row["default"] == "off", option
        elif parameter.default is not None and not parameter.required:
            assert code_in(row["default"]) == [str(parameter.default)], option
    arguments = [parameter.metavar for parameter in parameters if parameter.param_type_name == "argument"]
    assert named(f"`{command}`", "argument")[: len(arguments)] == arguments


# -- what goes in and what comes out


def test_the_keys_of_a_pattern_are_all_there() -> None:
    assert set(named("Pattern sources", "key")) == set(ROW_KEYS)
    text = read(PAGE)
    assert all(f"`{key}`" in text for key in COUNTED_KEYS)
    assert f"At most {MAX_QUESTIONS:,} rows." in text


@pytest.mark.parametrize("suffix", ["jsonl", "toml"])
def test_the_patterns_of_the_page_can_be_read(suffix: str, tmp_path: Path) -> None:
    (text,) = [
        block.text for block in blocks(PAGE) if block.text.startswith("[[" if suffix == "toml" else "{")
    ]
    file = tmp_path / f"patterns.{suffix}"
    file.write_text(text, encoding="utf-8")
    (question,) = load_questions(str(file), property_keys=["region"]).questions
    assert (question.namespace, question.mode) == ("public/default", Mode.PERSISTENT)
    assert question.selector.properties == ((("region", "eu"),) if suffix == "toml" else ())


def test_the_keys_of_a_result_are_all_there() -> None:
    source = inspect.getsource(BuildResult.record)
    real = re.findall(r'^            "(\w+)":', source, re.MULTILINE)
    assert sorted(named("Result of a build", "key")) == sorted(real)


def test_the_columns_of_the_exported_table_are_all_there() -> None:
    (text,) = re.findall(
        r"^`--export-parquet` writes one row a question: (.*?)\n\n", read(PAGE), re.MULTILINE | re.DOTALL
    )
    assert code_in(text) == TOTALS_SCHEMA.names


def test_the_metrics_of_a_build_are_all_there() -> None:
    shown = {code_in(row["metric"])[0]: row["meaning"] for row in rows("Metrics of a build", "metric")}
    assert shown == {f"broker_core_spark_build_{name}": meaning for name, meaning in METRICS.items()}


def test_the_columns_of_the_history_are_all_there() -> None:
    (text,) = re.findall(r"^The columns of `builds`: (.*?), as in", read(PAGE), re.MULTILINE | re.DOTALL)
    assert code_in(text) == HISTORY_SCHEMA.names


def test_the_parameters_of_the_function_are_all_there_with_their_defaults() -> None:
    parameters = inspect.signature(build).parameters
    shown = {code_in(row["parameter"])[0]: row["default"] for row in rows("Python", "parameter")}
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
        for row in rows("Metrics", "metric")
    }
    assert documented == real
    for page in all_pages():
        for name in re.findall(rf"\b{PREFIX}[a-z_]+[a-z]\b", read(page)):
            assert name in real or name.startswith(f"{PREFIX}build"), f"{page}: {name}"


def test_every_reason_is_there() -> None:
    assert sorted(named("Reasons to pass", "reason")) == sorted(PASS_REASONS)


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
    shown = set(named("Metrics", "metric"))
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
