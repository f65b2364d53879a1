"""``broker-core spark build``: precompute the listings of known patterns over a catalogue and publish them."""

from __future__ import annotations

import json
from typing import Annotated, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import broker_settings, examples, say
from broker_core_spark.commands.store_option import StoreOptions, chosen_options, parse_pairs

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
            help="The questions, each with namespace, mode, pattern and properties: JSON lines, .toml or .parquet (a "
            "path, s3:// ...), or table:NAME.",
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
        str | None,
        typer.Option(
            "--report",
            metavar="URI",
            help="Write a page of HTML about the result: a path, s3:// ...",
            show_default=False,
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
    store_options: StoreOptions = None,
) -> None:
    """Match all patterns over all topics and publish the answers as one verified generation.

    The last line that is printed is one object of JSON about the result. Patterns that no broker evaluates are reported
    and left out; anything else that is wrong ends the job, and the generation that is published stays as it is.
    """
    from broker_core_spark.batch import job
    from broker_core_spark.batch.spark.spark_session import spark_session

    keys = _selecting() if property_keys is None else _property_keys(property_keys)
    spark_settings = parse_pairs("--conf", conf)
    options = chosen_options(out, store_options)
    _check_places(out, patterns, report, export_parquet, options)
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


def _check_places(
    out: str, patterns: str, report: str | None, export: str | None, options: dict[str, str]
) -> None:
    """Raise unless each place answers, before Spark starts and long before the build ends."""
    from broker_core_spark.batch.source_address import is_in_bucket, is_of_spark
    from broker_core_spark.store import open_store
    from broker_core_spark.store.addressed_file import addressed_file
    from broker_core_spark.store.reached_store import check_reached, within

    check_reached(open_store(out, options))
    if is_in_bucket(patterns):
        within(patterns, addressed_file(patterns, options).check_readable)
    for place in (report, None if export is None or is_of_spark(export) else export):
        if place is not None:
            within(place, addressed_file(place, options).check_writable)


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
