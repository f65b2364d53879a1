"""``broker-core spark build``: precompute the listings of known patterns over a catalogue and publish them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import broker_settings, examples, plugin_settings, say
from broker_core.quantities import parse_duration
from broker_core_spark.commands.stop_signals import ended_by_signals
from broker_core_spark.commands.store_option import StoreOptions, chosen_options, parse_pairs
from broker_core_spark.settings import SparkSettings

if TYPE_CHECKING:
    from broker_core_spark.batch.build_result import BuildResult
    from broker_core_spark.batch.progress.progress import Progress
    from broker_core_spark.batch.publish_gates import PublishGates

__all__ = ["EXAMPLES", "EXIT_REFUSED", "build"]

#: The exit code of a build that a gate refuses to publish.
EXIT_REFUSED: Final = 3


class ShownProgress(StrEnum):
    """What a build says while it runs."""

    AUTO = "auto"
    TERMINAL = "terminal"
    LINES = "lines"
    NONE = "none"


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
            help="The most tasks of a stage; by default by work, some seconds each. The result is the same for any "
            "number.",
            show_default=False,
        ),
    ] = None,
    largest_segment: Annotated[
        int,
        typer.Option(
            "--largest-segment",
            min=1024 * 1024,
            metavar="BYTES",
            help="Names of a segment at most, in bytes; half of it on average. A changed topic makes its segment anew.",
            show_default=True,
        ),
    ] = 16 * 1024 * 1024,
    property_keys: Annotated[
        list[str] | None,
        typer.Option(
            "--property-keys",
            "--property-key",
            metavar="KEY,...",
            help="The properties that select topics, instead of those that the brokers of --config select by; may be "
            "repeated. '' for none.",
            show_default=False,
        ),
    ] = None,
    always: Annotated[
        str | None,
        typer.Option(
            "--always",
            metavar="SOURCE",
            help="Questions to build besides those of --patterns, whatever was learned.",
            show_default="plugins.spark.always",
        ),
    ] = None,
    keep_learned: Annotated[
        float | None,
        typer.Option(
            "--keep-learned",
            metavar="DURATION",
            parser=parse_duration,
            help="For how long a learned question is built after it was asked last; 0 keeps none of earlier builds.",
            show_default="plugins.spark.keep_learned",
        ),
    ] = None,
    min_questions: Annotated[
        int | None,
        typer.Option(
            "--min-questions",
            min=0,
            metavar="N",
            help="Publish no generation with fewer questions.",
            show_default="plugins.spark.min_questions",
        ),
    ] = None,
    max_question_loss: Annotated[
        float | None,
        typer.Option(
            "--max-question-loss",
            min=0,
            max=1,
            metavar="SHARE",
            help="The share of its questions that a generation may lose against the one before.",
            show_default="plugins.spark.max_question_loss",
        ),
    ] = None,
    max_topic_loss: Annotated[
        float | None,
        typer.Option(
            "--max-topic-loss",
            min=0,
            max=1,
            metavar="SHARE",
            help="The same for the topics in the namespaces of its questions.",
            show_default="plugins.spark.max_topic_loss",
        ),
    ] = None,
    max_coverage_loss: Annotated[
        float | None,
        typer.Option(
            "--max-coverage-loss",
            min=0,
            max=1,
            metavar="SHARE",
            help="The same for the share of what is asked that it covers, in points.",
            show_default="plugins.spark.max_coverage_loss",
        ),
    ] = None,
    allow_shrink: Annotated[
        bool, typer.Option("--allow-shrink", help="Publish, whatever was lost.", show_default=False)
    ] = False,
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
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="URI",
            help="Append a row about the build to a table in this folder.",
            show_default=False,
        ),
    ] = None,
    history_questions: Annotated[
        bool,
        typer.Option("--history-questions", help="Append a row for each question too.", show_default=False),
    ] = False,
    quarantine: Annotated[
        str | None,
        typer.Option(
            "--quarantine",
            metavar="URI",
            help="Put rows of a table or a file of names that are no topics into this table. Without it such a row "
            "ends the build.",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="URI",
            help="Write metrics for Prometheus: a file of the textfile collector, or a push gateway (http://...).",
            show_default=False,
        ),
    ] = None,
    progress: Annotated[
        ShownProgress,
        typer.Option(
            "--progress",
            help="What to say on standard error while it runs: auto is one line on a terminal, and nothing elsewhere.",
        ),
    ] = ShownProgress.AUTO,
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
    from broker_core_spark.batch.publish_gates import PublishRefused
    from broker_core_spark.batch.spark.spark_session import spark_session
    from broker_core_spark.store import open_store
    from broker_core_spark.store.publishing import BuildRun

    keys = _selecting() if property_keys is None else _property_keys(property_keys)
    settings = _settings()
    gates = _gates(
        settings,
        min_questions=min_questions,
        max_question_loss=max_question_loss,
        max_topic_loss=max_topic_loss,
        max_coverage_loss=max_coverage_loss,
        allow_shrink=allow_shrink or None,
    )
    spark_settings = parse_pairs("--conf", conf)
    options = chosen_options(out, store_options)
    always = settings.always if always is None else always
    _check_places(
        out, (patterns, always), (report, _metrics_file(metrics)), (export_parquet, quarantine), options
    )
    longest = broker_settings().max_pattern_length
    run = BuildRun()

    def published() -> str:
        return f"{run.published.generation[:12]} is published" if run.published else "nothing was published"

    def clean_up() -> None:
        # Tasks may have written until the session ended.
        run.remove_staged(open_store(out, options))

    with (
        ended_by_signals("spark build", published, cleanup=clean_up),
        _measured(metrics, options) as measured,
        spark_session(master=master, conf=spark_settings) as spark,
    ):
        try:
            with _progress(progress) as shown:
                result = job.build(
                    spark,
                    catalogue=catalogue,
                    patterns=patterns,
                    store=out,
                    namespace=namespace,
                    partitions=partitions,
                    segment_bytes=largest_segment // 2,
                    largest_segment_bytes=largest_segment,
                    property_keys=keys,
                    always=always,
                    keep_learned=settings.keep_learned if keep_learned is None else keep_learned,
                    gates=gates,
                    incremental=incremental,
                    report=report,
                    export_parquet=export_parquet,
                    history=history,
                    history_questions=history_questions,
                    quarantine=quarantine,
                    progress=shown,
                    max_pattern_length=longest,
                    store_options=options,
                    run=run,
                )
        except PublishRefused as error:
            say(str(error))
            raise typer.Exit(EXIT_REFUSED) from error
        measured.append(result)
    for one in result.refused[:_SHOWN]:
        _say(f"refused: {one.namespace} {one.pattern[:200]!r}: {one.reason}")
    if len(result.refused) > _SHOWN:
        _say(f"refused: {len(result.refused) - _SHOWN} more patterns")
    if result.quarantined:
        _say(f"quarantine: {result.quarantined} rows of the catalogue are no topics: {quarantine}")
    if result.left_out:
        names = sorted({question.namespace for question in result.left_out})
        _say(
            f"left out: {len(result.left_out)} questions of {names[0]} ...: the catalogue has no such namespace"
        )
    print(json.dumps(result.record(), ensure_ascii=False))


def _check_places(
    out: str,
    patterns: Iterable[str | None],
    files: Iterable[str | None],
    tables: Iterable[str | None],
    options: dict[str, str],
) -> None:
    """Raise unless each place answers, before Spark starts and long before the build ends."""
    from broker_core_spark.batch.source_address import is_in_bucket, is_of_spark
    from broker_core_spark.store import open_store
    from broker_core_spark.store.addressed_file import addressed_file
    from broker_core_spark.store.reached_store import check_reached, within

    check_reached(open_store(out, options))
    for source in patterns:
        if source is not None and is_in_bucket(source):
            within(source, addressed_file(source, options).check_readable)
    of_files = (table for table in tables if table is not None and not is_of_spark(table))
    for place in (*files, *of_files):
        if place is not None:
            within(place, addressed_file(place, options).check_writable)


def _progress(shown: ShownProgress) -> AbstractContextManager[Progress]:
    """The progress that is shown, until the end of the context."""
    from broker_core_spark.batch.progress.progress import NoProgress
    from broker_core_spark.batch.progress.shown_progress import ProgressLines, TerminalProgress

    if shown is ShownProgress.LINES:
        return nullcontext(ProgressLines(_say))
    if shown is ShownProgress.TERMINAL or (shown is ShownProgress.AUTO and sys.stderr.isatty()):
        return TerminalProgress(sys.stderr)
    return nullcontext(NoProgress())


@contextmanager
def _measured(address: str | None, options: dict[str, str]) -> Iterator[list[BuildResult]]:
    """Writes the metrics of the result that is put into the list, or those of a build that did not publish."""
    from broker_core_spark.batch.errors import BatchError
    from broker_core_spark.batch.reports.build_metrics import write_metrics

    results: list[BuildResult] = []
    try:
        yield results
    except BaseException:
        if address is not None:
            try:
                write_metrics(address, None, options)
            except BatchError as error:
                _say(str(error))
        raise
    if address is not None:
        write_metrics(address, results[0], options)


def _metrics_file(address: str | None) -> str | None:
    from broker_core_spark.batch.reports.build_metrics import is_push_gateway

    return None if address is None or is_push_gateway(address) else address


def _say(text: str) -> None:
    say(f"spark build: {text}")


def _settings() -> SparkSettings:
    """The settings of builds: ``[plugins.spark]`` of ``--config``, else the defaults."""
    found: SparkSettings | None = plugin_settings("spark", optional=True)
    return SparkSettings(store="-") if found is None else found


def _gates(settings: SparkSettings, **options: float | None) -> PublishGates:
    """The gates of the settings, and of the options that are given."""
    from broker_core_spark.batch.publish_gates import PublishGates

    of_settings = PublishGates(
        settings.min_questions,
        settings.max_question_loss,
        settings.max_topic_loss,
        settings.max_coverage_loss,
    )
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return replace(of_settings, **given)


def _selecting() -> tuple[str, ...] | None:
    """The properties that a broker selects by: ``[catalog] property_keys`` and those of its plugins.

    ``None`` for none: then questions with properties ask for the option.
    """
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
    return tuple(sorted(own | plugins)) or None


def _property_keys(texts: list[str]) -> tuple[str, ...]:
    return tuple(key.strip() for text in texts for key in text.split(",") if key.strip())
