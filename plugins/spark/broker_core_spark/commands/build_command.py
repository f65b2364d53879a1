"""``broker-core spark build``: precompute the listings of known patterns over a catalogue and publish them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import broker_settings, examples, say

__all__ = ["EXAMPLES", "build"]

_SHOWN: Final = 20  # refused patterns of the output

EXAMPLES: Final = examples(
    "broker-core spark build --catalogue broker-core.sqlite --patterns patterns.jsonl --out generations",
    "# of the Postgres plugin's database, into a bucket, keeping what has not changed",
    "broker-core spark build --catalogue postgresql://reader@db/topics --patterns patterns.jsonl "
    "--out s3://listings/prod --incremental --report report.html",
    "# a file of names; four workers with memory of their own",
    "broker-core spark build --catalogue names.txt --namespace public/default --patterns patterns.jsonl "
    "--out generations --master local[4] --conf spark.driver.memory=2g",
)


def build(
    *,
    catalogue: Annotated[
        str,
        typer.Option(
            "--catalogue",
            metavar="SOURCE",
            help="The topics: broker-core.sqlite, postgresql://USER@HOST/DATABASE, a .parquet file or folder, "
            "table:NAME of the session, or a file of names (with --namespace).",
            show_default=False,
        ),
    ],
    patterns: Annotated[
        str,
        typer.Option(
            "--patterns",
            metavar="SOURCE",
            help="The questions, each with namespace, mode, pattern and properties: JSON lines, .toml, .parquet or "
            "table:NAME.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="URI",
            help="Where generations are: a folder, file://, s3://, gs:// or az://; plugins.spark.store of the broker.",
            show_default=False,
        ),
    ],
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            metavar="NAMESPACE",
            help="tenant/namespace of local names in a file or table.",
            show_default=False,
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            metavar="N",
            help="Tasks that make segments; by default one for 400,000 names. The result is the same for any number.",
            show_default=False,
        ),
    ] = None,
    property_keys: Annotated[
        str | None,
        typer.Option(
            "--property-keys",
            metavar="KEY,...",
            help="The properties that select topics, instead of those that the brokers of --config select by.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Write a page of HTML about the result.", show_default=False
        ),
    ] = None,
    export_parquet: Annotated[
        str | None,
        typer.Option(
            "--export-parquet",
            metavar="URI",
            help="Write a table of the questions with their counts and hashes.",
            show_default=False,
        ),
    ] = None,
    incremental: Annotated[
        bool,
        typer.Option(
            "--incremental/--full",
            help="Keep the segments of the last generation that would come out the same.",
        ),
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="Where Spark runs, unless a session is there (spark-submit): local[2], spark://, k8s://, yarn, sc://.",
            show_default="local[*]",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.", show_default=False
        ),
    ] = None,
    store_options: Annotated[
        list[str] | None,
        typer.Option(
            "--store-option",
            metavar="KEY=VALUE",
            help="An option of the bucket: endpoint, region ...; may be repeated. No secrets: these come from the "
            "environment.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Match all patterns over all topics and publish the answers as one verified generation.

    The last line that is printed is one object of JSON about the result. Patterns that no broker evaluates are reported
    and left out; anything else that is wrong ends the job, and the generation that is published stays as it is.
    """
    from broker_core_spark.batch import job
    from broker_core_spark.batch.spark.spark_session import spark_session

    keys = _selecting() if property_keys is None else _property_keys(property_keys)
    spark_settings = _pairs("--conf", conf)
    options = _pairs("--store-option", store_options)
    with spark_session(master=master, conf=spark_settings) as spark:
        result = job.build(
            spark,
            catalogue=catalogue,
            patterns=patterns,
            store=out,
            namespace=namespace,
            partitions=partitions,
            property_keys=keys,
            incremental=incremental,
            report=report,
            export_parquet=export_parquet,
            max_pattern_length=broker_settings().max_pattern_length,
            store_options=options,
        )
    for one in result.refused[:_SHOWN]:
        _say(f"refused: {one.namespace} {one.pattern[:200]!r}: {one.reason}")
    if len(result.refused) > _SHOWN:
        _say(f"refused: {len(result.refused) - _SHOWN} more patterns")
    if result.left_out:
        names = sorted({question.namespace for question in result.left_out})
        _say(
            f"left out: {len(result.left_out)} questions of {names[0]} ...: the catalogue has no such namespace"
        )
    print(json.dumps(result.record(), ensure_ascii=False))


def _say(text: str) -> None:
    say(f"spark build: {text}")


def _selecting() -> tuple[str, ...]:
    """The properties that a broker selects by: ``[catalog] property_keys`` and those of its plugins."""
    settings = broker_settings()
    try:
        plugins = settings.plugin_property_keys()
    except BrokerCoreError as error:
        raise typer.BadParameter(
            f"without it what counts is which properties select, and {error}", param_hint="--property-keys"
        ) from error
    own = settings.property_keys
    if own and plugins and own != plugins:
        _say(
            f"catalog.property_keys ({', '.join(sorted(own))}) and those of the plugins "
            f"({', '.join(sorted(plugins))}) differ: topics of one are not selected by the keys of the other alone, "
            "but in the generation they are; make both equal"
        )
    return tuple(sorted(own | plugins))


def _property_keys(text: str) -> tuple[str, ...]:
    return tuple(key.strip() for key in text.split(",") if key.strip())


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts or ():
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise typer.BadParameter(f"{text!r}: expected KEY=VALUE", param_hint=option)
        pairs[key] = value
    return pairs
