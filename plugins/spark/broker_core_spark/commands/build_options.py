"""The options of ``broker-core spark build``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from broker_core.quantities import parse_duration

__all__ = [
    "AllowShrinkOption",
    "AlwaysOption",
    "CatalogueOption",
    "ChangesOption",
    "ConfOption",
    "ExportMatchesOption",
    "ExportParquetOption",
    "HistoryOption",
    "HistoryQuestionsOption",
    "IncrementalOption",
    "KeepLearnedOption",
    "LargestSegmentOption",
    "MasterOption",
    "MaxCoverageLossOption",
    "MaxQuestionLossOption",
    "MaxTopicLossOption",
    "MetricsOption",
    "MinQuestionsOption",
    "NamespaceOption",
    "OutOption",
    "PartitionsOption",
    "PatternsOption",
    "ProgressOption",
    "PropertyKeysOption",
    "ReportOption",
    "ShownProgress",
    "StrictOption",
    "WhereOption",
]


class ShownProgress(StrEnum):
    """The kinds of output of a running build."""

    AUTO = "auto"
    TERMINAL = "terminal"
    LINES = "lines"
    NONE = "none"


CatalogueOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--catalogue",
        metavar="SOURCE",
        help="The topics: broker-core.sqlite, postgresql://USER@HOST/DATABASE, a .parquet file or folder, "
        "table:NAME of the session, or a file of names (with --namespace). Repeat it for the topics of several. "
        "Without it, what a running server lists (--broker) of --namespace.",
        show_default=False,
    ),
]
PatternsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--patterns",
        metavar="SOURCE",
        help="The questions, each with namespace, mode, pattern and properties: JSON lines, .toml or .parquet (a "
        "path, s3:// ...), or table:NAME.",
        show_default=False,
    ),
]
OutOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="URI",
        help="Where generations are: a folder, file://, s3://, gs:// or az://; plugins.spark.store of the broker.",
        show_default=False,
    ),
]
NamespaceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAMESPACE",
        help="tenant/namespace of local names in a file or table, and the one that a running server lists.",
        show_default=False,
    ),
]
PartitionsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        min=1,
        metavar="N",
        help="The most tasks of a stage that matches; by default by work, some seconds each. The result is the same "
        "for any number.",
        show_default=False,
    ),
]
LargestSegmentOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--largest-segment",
        min=1024 * 1024,
        metavar="BYTES",
        help="Names of a segment at most, in bytes; half of it on average. A changed topic makes its segment anew.",
        show_default=True,
    ),
]
PropertyKeysOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--property-keys",
        "--property-key",
        metavar="KEY,...",
        help="The properties that select topics, instead of those that the brokers of --config select by; may be "
        "repeated. '' for none.",
        show_default=False,
    ),
]
StrictOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Build nothing where a question has a property that selects nothing. Without it the question is as wide "
        "as without the property.",
        show_default=False,
    ),
]
AlwaysOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--always",
        metavar="SOURCE",
        help="Questions to build besides those of --patterns, whatever was learned.",
        show_default="plugins.spark.always",
    ),
]
KeepLearnedOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--keep-learned",
        metavar="DURATION",
        parser=parse_duration,
        help="For how long a learned question is built after it was asked last; 0 keeps none of earlier builds.",
        show_default="plugins.spark.keep_learned",
    ),
]
MinQuestionsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min-questions",
        min=0,
        metavar="N",
        help="Publish no generation with fewer questions.",
        show_default="plugins.spark.min_questions",
    ),
]
MaxQuestionLossOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-question-loss",
        min=0,
        max=1,
        metavar="SHARE",
        help="The share of its questions that a generation may lose against the best of the last day.",
        show_default="plugins.spark.max_question_loss",
    ),
]
MaxTopicLossOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-topic-loss",
        min=0,
        max=1,
        metavar="SHARE",
        help="The same for the topics in the namespaces of its questions.",
        show_default="plugins.spark.max_topic_loss",
    ),
]
MaxCoverageLossOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--max-coverage-loss",
        min=0,
        max=1,
        metavar="SHARE",
        help="The same for the share of what is asked that it covers, in points.",
        show_default="plugins.spark.max_coverage_loss",
    ),
]
AllowShrinkOption: TypeAlias = Annotated[
    bool, typer.Option("--allow-shrink", help="Publish, whatever was lost.", show_default=False)
]
ReportOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="URI",
        help="Write a page of HTML about the result: a path, s3:// ...",
        show_default=False,
    ),
]
ExportParquetOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--export-parquet",
        metavar="URI",
        help="Write a table of the questions with their counts and hashes.",
        show_default=False,
    ),
]
ExportMatchesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--export-matches",
        metavar="URI",
        help="Write a row for each topic of each question into a folder number=N in this folder.",
        show_default=False,
    ),
]
HistoryOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="URI",
        help="Append a row about the build to a table in this folder, or to table:NAME of the session.",
        show_default=False,
    ),
]
HistoryQuestionsOption: TypeAlias = Annotated[
    bool,
    typer.Option("--history-questions", help="Append a row for each question too.", show_default=False),
]
ChangesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--changes",
        metavar="COLUMN",
        help="A column of a table whose value grows with each change of a row. Iceberg and Delta need none.",
        show_default=False,
    ),
]
WhereOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="SQL",
        help="A condition for rows of a table: all others are left out, and counted.",
        show_default=False,
    ),
]
MetricsOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="URI",
        help="Write metrics for Prometheus: a file of the textfile collector, or a push gateway (http://...).",
        show_default=False,
    ),
]
ProgressOption: TypeAlias = Annotated[
    ShownProgress,
    typer.Option(
        "--progress",
        help="What to say on standard error while it runs: auto is one line on a terminal, and nothing elsewhere.",
    ),
]
IncrementalOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--incremental/--full",
        help="Keep the segments of the last generation that would come out the same.",
    ),
]
MasterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs, unless a session is there (spark-submit): local[2], spark://, k8s://, yarn, sc://.",
        show_default="local[*]",
    ),
]
ConfOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.", show_default=False
    ),
]
