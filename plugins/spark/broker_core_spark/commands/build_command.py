"""``broker-core spark build``: precompute the listings of known patterns over a catalogue and publish them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import RunningBroker, broker_settings, examples, print_json, say
from broker_core.quantities import parse_duration
from broker_core_spark.commands.build_options import (
    ChangesOption,
    ConfOption,
    MasterOption,
    NamespaceOption,
    OutOption,
    WhereOption,
)
from broker_core_spark.commands.build_settings import build_settings
from broker_core_spark.commands.build_settings import property_keys as selecting_keys
from broker_core_spark.commands.stop_signals import ended_by_signals
from broker_core_spark.commands.store_option import StoreOptions, chosen_options, parse_pairs

if TYPE_CHECKING:
    from broker_core_spark.batch import BuildResult, Progress
    from broker_core_spark.store import BuildRun

__all__ = ["EXAMPLES", "EXIT_REFUSED", "build"]

#: The exit code of a build that a gate refuses to publish.
EXIT_REFUSED: Final = 3

#: Time to write the metrics of a build that failed, which may wait for the same store.
_METRICS_SECONDS: Final = 5.0

EXAMPLES: Final = examples(
    "broker-core spark build --catalogue broker-core.sqlite --patterns patterns.jsonl --out generations",
    "# of the Postgres plugin's database, into a bucket, keeping what has not changed",
    "broker-core spark build --catalogue postgresql://reader@db/topics --patterns patterns.jsonl "
    "--out s3://listings/prod --incremental --report report.html",
    "# a file of names; four workers with memory of their own",
    "broker-core spark build --catalogue names.txt --namespace public/default --patterns patterns.jsonl "
    "--out generations --master local[4] --conf spark.driver.memory=2g",
    "# what a running server lists, such as a gateway before a Kafka cluster",
    "broker-core spark build --broker http://gateway:8080 --namespace acme/kafka --patterns patterns.jsonl "
    "--out generations",
)


def build(
    *,
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
    out: OutOption,
    catalogue: Annotated[
        list[str] | None,
        typer.Option(
            "--catalogue",
            metavar="SOURCE",
            help="The topics: broker-core.sqlite, postgresql://USER@HOST/DATABASE, a .parquet file or folder, "
            "table:NAME of the session, or a file of names (with --namespace). Repeat it for the topics of several. "
            "Without it, what a running server lists (--broker) of --namespace.",
            show_default=False,
        ),
    ] = None,
    namespace: NamespaceOption = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            metavar="N",
            help="The most tasks of a stage that matches; by default by work, some seconds each. The result is the "
            "same for any number.",
            show_default=False,
        ),
    ] = None,
    largest_segment: Annotated[
        int,
        typer.Option(
            "--largest-segment",
            min=1024 * 1024,
            metavar="BYTES",
            help="Names of a segment at most, in bytes; half of it on average.",
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
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Build nothing if a question has a property that selects nothing. Without it the question is as "
            "wide as without the property.",
            show_default=False,
        ),
    ] = False,
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
            help="The share of its questions that a generation may lose against the best of the last day.",
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
            help="The share of the topics in the namespaces of its questions that a generation may lose.",
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
            help="The points that it may lose of the share of asked questions that it covers.",
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
    export_matches: Annotated[
        str | None,
        typer.Option(
            "--export-matches",
            metavar="URI",
            help="Write a row for each topic of each question into a folder number=N in this folder.",
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="URI",
            help="Append a row about the build to a table in this folder, or to table:NAME of the session.",
            show_default=False,
        ),
    ] = None,
    history_questions: Annotated[
        bool,
        typer.Option("--history-questions", help="Append a row for each question too.", show_default=False),
    ] = False,
    where: WhereOption = None,
    changes: ChangesOption = None,
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
        Literal["auto", "terminal", "lines", "none"],
        typer.Option(
            "--progress",
            help="What to say on standard error while it runs: auto is one line on a terminal, and nothing elsewhere.",
        ),
    ] = "auto",
    incremental: Annotated[
        bool,
        typer.Option(
            "--incremental/--full",
            help="Match new and changed names alone, and carry the rest of the last generation over.",
        ),
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    store_options: StoreOptions = None,
    broker: RunningBroker,
) -> None:
    """Match all patterns over all topics and publish the answers as one verified generation.

    The last line that is printed is one object of JSON about the result. Patterns that no broker evaluates are reported
    and left out; anything else that is wrong ends the job, and the generation that is published stays as it is.
    """
    run: BuildRun | None = None

    def published() -> str:
        return (
            f"{done.generation[:12]} is published"
            if run and (done := run.published)
            else "nothing was published"
        )

    def clean_up() -> None:
        if run is not None:  # tasks may have written until the session ended
            run.remove_staged(open_store(out, chosen_options(out, store_options)))

    # The imports take a second or two: a signal may come in them.
    with ended_by_signals("spark build", published, cleanup=clean_up):
        from broker_core_spark.batch import (
            OutputFailed,
            PublishGates,
            PublishRefused,
            check_rows,
            spark_session,
            write_metrics,
        )
        from broker_core_spark.batch import build as build_generation
        from broker_core_spark.store import BuildRun, open_store

        options = chosen_options(out, store_options)
        result: BuildResult | None = None
        try:
            keys = selecting_keys(property_keys)
            settings = build_settings(
                always=always,
                keep_learned=keep_learned,
                min_questions=min_questions,
                max_question_loss=max_question_loss,
                max_topic_loss=max_topic_loss,
                max_coverage_loss=max_coverage_loss,
            )
            gates = PublishGates(
                settings.min_questions,
                settings.max_question_loss,
                settings.max_topic_loss,
                settings.max_coverage_loss,
                allow_shrink,
            )
            spark_settings = parse_pairs("--conf", conf)
            questions = [source for source in (patterns, settings.always) if source is not None]
            sources = _sources(catalogue, broker, namespace)
            _check_places(
                out,
                (sources, namespace, where, changes),
                questions,
                (report, metrics),
                (export_parquet, export_matches, history),
                options,
            )
            check_rows(questions, property_keys=keys, store_options=options, strict=strict)
            longest = broker_settings().max_pattern_length
            run = BuildRun()
            with spark_session(master=master, conf=spark_settings) as spark, _progress(progress) as shown:
                result = build_generation(
                    spark,
                    catalogue=sources,
                    patterns=patterns,
                    store=out,
                    namespace=namespace,
                    partitions=partitions,
                    segment_bytes=largest_segment // 2,
                    largest_segment_bytes=largest_segment,
                    property_keys=keys,
                    strict=strict,
                    always=settings.always,
                    keep_learned=settings.keep_learned,
                    gates=gates,
                    incremental=incremental,
                    report=report,
                    export_parquet=export_parquet,
                    export_matches=export_matches,
                    history=history,
                    history_questions=history_questions,
                    where=where,
                    changes=changes,
                    progress=shown,
                    max_pattern_length=longest,
                    store_options=options,
                    run=run,
                )
            _print_result(result)
        except BaseException as error:
            if isinstance(error, OutputFailed):
                result = error.result
            if metrics is not None:
                _measure_failure(metrics, result, options)
            if isinstance(error, PublishRefused):
                for note in getattr(error, "__notes__", ()):
                    _say(note)
                say(str(error))
                raise typer.Exit(EXIT_REFUSED) from error
            if result is not None and isinstance(error, BrokerCoreError):
                _print_result(result)  # it is published, though its report is not
            raise
        if metrics is not None:
            write_metrics(metrics, result, options)


def _print_result(result: BuildResult) -> None:
    """Print the result, after the notes about it."""
    for note in result.notes:
        _say(note)
    print_json(result.record())


def _sources(
    catalogue: list[str] | None, broker: RunningBroker, namespace: str | None
) -> list[str | RunningBroker]:
    """The named catalogues, and the running server if it is given, or if no catalogue is named."""
    if not catalogue and broker.given is None and namespace is None:
        raise typer.BadParameter(
            "of which topics? Give it, or --namespace of a running server (--broker)",
            param_hint="--catalogue",
        )
    sources: list[str | RunningBroker] = [*(catalogue or ())]
    if not sources or broker.given is not None:
        sources.append(replace(broker, given=broker.url))  # the settings say it to this thread alone
    return sources


def _check_places(
    out: str,
    catalogue: tuple[Sequence[str | RunningBroker], str | None, str | None, str | None],
    patterns: Iterable[str],
    files: Iterable[str | None],
    tables: Iterable[str | None],
    options: dict[str, str],
) -> None:
    """Raise unless each place answers, before Spark starts and long before the build ends.

    A push gateway is not asked, nor a place that Spark's connectors write.
    """
    from broker_core_spark.batch import (
        check_catalogue,
        check_folder,
        check_patterns,
        is_of_spark,
        redacted_source,
    )
    from broker_core_spark.store import addressed_file, check_reached, open_store, within

    sources, namespace, where, changes = catalogue
    for topics in sources:
        within(
            redacted_source(topics),
            partial(check_catalogue, topics, namespace=namespace, where=where, changes=changes),
        )
    check_reached(open_store(out, options))
    for source in patterns:
        within(source, partial(check_patterns, source, options))
    for address in files:
        if address is not None and not is_of_spark(address):
            within(address, addressed_file(address, options).check_writable)
    for address in tables:
        if address is not None:
            check_folder(address)


def _progress(shown: str) -> AbstractContextManager[Progress | None]:
    """The display of progress that ``--progress`` chooses, until the end of the context."""
    from broker_core_spark.batch import ProgressLines, terminal_progress

    if shown == "lines":
        return nullcontext(ProgressLines(_say))
    if shown == "terminal" or (shown == "auto" and sys.stderr.isatty()):
        return terminal_progress(sys.stderr)
    return nullcontext()


def _measure_failure(address: str, result: BuildResult | None, options: dict[str, str]) -> None:
    """Write the metrics of a build that failed: with those of its generation, if it has published one."""
    from broker_core_spark.batch import redacted_source, write_metrics
    from broker_core_spark.store import within

    write = partial(write_metrics, address, result, options, succeeded=False)
    try:
        # The place of the metrics may be the one that gives no answer.
        within(redacted_source(address), write, _METRICS_SECONDS)
    except BrokerCoreError as error:
        _say(str(error))


def _say(text: str) -> None:
    say(f"spark build: {text}")
