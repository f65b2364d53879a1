"""The job of a build: reads a catalogue once, matches all questions, writes segments, publishes the generation.

1. Questions and store are checked. A mark keeps ``gc`` away.
2. A snapshot of the catalogue is staged as sorted runs (:mod:`.staging.sorted_runs`) and released.
3. Tasks make the segments (:mod:`.segments.segment_task`) and report what they wrote to the driver.
4. The driver writes the manifest and publishes it. A failure before leaves the published generation as it is, and
   files that nothing refers to.

Only the DataFrame API and the store are used, so the job runs with any session.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import RunningBroker
from broker_core.quantities import counted
from broker_core_spark.batch.build_errors import BatchError, NothingToKeep
from broker_core_spark.batch.build_result import BuildResult, OutputFailed, this_builder
from broker_core_spark.batch.generation_differences import differences_to, totals_file
from broker_core_spark.batch.incremental.carry_tasks import keep_segments
from broker_core_spark.batch.incremental.segment_reuse import (
    SegmentReuse,
    read_previous_generation,
    reusable_segments,
)
from broker_core_spark.batch.matches_export import matches_address, write_matches
from broker_core_spark.batch.progress.progress import Progress, current_progress, showing
from broker_core_spark.batch.publish_gates import (
    PublishGates,
    check_questions,
    check_topics,
    had_before,
    published_before,
)
from broker_core_spark.batch.questions.learned_questions import kept_rows, leave_learned, oldest_kept
from broker_core_spark.batch.questions.load_questions import LoadedQuestions, load_questions
from broker_core_spark.batch.reports.build_notes import build_notes, empty_property_notes
from broker_core_spark.batch.segments.make_segments import make_segments
from broker_core_spark.batch.segments.question_totals import question_totals
from broker_core_spark.batch.segments.segment_puts import StoredSegments
from broker_core_spark.batch.segments.tallies import read_tallies
from broker_core_spark.batch.source_address import FRAME
from broker_core_spark.batch.source_redaction import redacted_source
from broker_core_spark.batch.sources.catalogue_source import CatalogueSnapshot
from broker_core_spark.batch.sources.open_catalogue import open_catalogue
from broker_core_spark.batch.staging.sorted_runs import SortedRun
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.batch.write_manifest import write_manifest
from broker_core_spark.batch.written_table import check_table, history_tables, write_table
from broker_core_spark.errors import DamagedFile, InvalidGeneration, NoSuchGeneration
from broker_core_spark.format import SEGMENT_BYTES
from broker_core_spark.settings import KEEP_LEARNED
from broker_core_spark.store import (
    BuildRun,
    Store,
    addressed_file,
    begin_build,
    open_store,
    read_build_totals,
    readable_pointers,
    write_build_record,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["BuildResult", "OutputFailed", "build"]


@contextmanager
def _timed(seconds: dict[str, float], step: str) -> Iterator[None]:
    """Reports a step to the progress, and adds the time of the block to its seconds."""
    began = time.monotonic()
    progress = current_progress()
    if progress is not None:
        progress.step(step)
    try:
        yield
    finally:
        seconds[step] = seconds.get(step, 0.0) + time.monotonic() - began


def build(
    spark: SparkSession,
    *,
    catalogue: str | DataFrame | RunningBroker | Sequence[str | DataFrame | RunningBroker],
    patterns: str | DataFrame,
    store: str,
    namespace: str | None = None,
    partitions: int | None = None,
    property_keys: Sequence[str] | None = None,
    always: str | DataFrame | None = None,
    keep_learned: float = KEEP_LEARNED,
    strict: bool = False,
    gates: PublishGates | None = None,
    incremental: bool = False,
    report: Path | str | None = None,
    export_parquet: str | None = None,
    export_matches: str | None = None,
    history: str | None = None,
    history_questions: bool = False,
    where: str | None = None,
    changes: str | None = None,
    max_pattern_length: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    largest_segment_bytes: int | None = None,
    store_options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    run: BuildRun | None = None,
) -> BuildResult:
    """Build a generation of ``catalogue`` for ``patterns`` and publish it in ``store``.

    ``catalogue`` and ``patterns`` are addresses or DataFrames for :func:`~.sources.open_catalogue.open_catalogue` and
    :func:`~.questions.load_questions.load_questions`, the catalogue also a
    :class:`~broker_core.plugin_cli.RunningBroker`, or several of these. ``namespace`` is for local names, and the one
    that a server lists. ``partitions`` is the largest number of tasks of a stage, by default a task has some seconds of
    work. ``segment_bytes`` and ``largest_segment_bytes`` are the average and the largest size of segments in bytes of
    names, the largest by default twice the average. The bytes of a generation do not depend on the tasks.
    ``property_keys`` are the keys of selecting properties; ``None`` is an error if questions have properties.
    ``always`` is one more source of questions. With ``strict`` a question with another property is an error. Learned
    questions of earlier builds are built for ``keep_learned`` seconds after they were last asked. ``gates`` are the
    gates of publishing, by default :class:`~.publish_gates.PublishGates`. ``incremental`` keeps unchanged segments of
    the last generation. ``report`` is the address of the HTML report, ``export_parquet`` of the table of counts and
    hashes, ``export_matches`` of the folder with the topics of each question. ``history`` is the folder of tables to
    which the build appends a row, with ``history_questions`` also one for each question. ``where`` is a condition in
    SQL that leaves other rows of a table out, ``changes`` its column of versions. ``store_options`` are for every
    bucket here. ``progress`` is notified of the work, ``run`` gets the result.

    Raises :exc:`~.publish_gates.PublishRefused` if a gate is closed, :exc:`BatchError`,
    :exc:`~broker_core_spark.errors.StoreFailed` and other errors of the package. Nothing is published then, except for
    :exc:`OutputFailed`: a report, a table or an export failed, and the error has the result.
    """
    if partitions is not None and partitions < 1:
        raise BatchError(f"{counted(partitions, 'partition')}: at least 1")
    gates = gates or PublishGates()
    seconds: dict[str, float] = {}
    timed = partial(_timed, seconds)
    began = datetime.now(UTC)
    keys = None if property_keys is None else tuple(sorted(set(property_keys)))
    with timed("total"), showing(progress):
        place = open_store(store, store_options or {})
        # A build whose report has no place fails at once.
        if report is not None:
            addressed_file(str(report), store_options).check_writable()
        for table in (
            export_parquet,
            export_matches,
            *(history_tables(history) if history is not None else ()),
        ):
            if table is not None:
                check_table(spark, table)
        with timed("patterns"):
            loaded = load_questions(
                patterns,
                spark=spark,
                property_keys=keys,
                max_length=max_pattern_length,
                store_options=store_options,
                always=always,
                kept=kept_rows(place) if keep_learned else (),
                oldest=oldest_kept(keep_learned),
                strict=strict,
            )
            keys = loaded.property_keys
            before, not_compared = published_before(place)
            had = had_before(place, before, loaded)
        source = open_catalogue(catalogue, spark=spark, namespace=namespace, where=where, changes=changes)
        place.check()
        totals_before = None if before is None else read_build_totals(place, before.generation)
        with begin_build(place, run=run) as building:
            staging = StagingArea(
                place.uri,
                building.run.staged,
                keys,
                segment_bytes,
                dict(store_options or {}),
                largest_segment_bytes=largest_segment_bytes,
                # Namespaces that nobody asks about are not read.
                namespaces=frozenset(question.namespace for question in loaded.questions),
            )
            with ExitStack() as reading:
                with timed("catalogue"):
                    snapshot = reading.enter_context(source.snapshot())
                    reuse, kept, full_because = None, StoredSegments(), ""
                    if incremental:
                        try:
                            reuse = _reuse(place, snapshot, loaded, staging)
                        except (NothingToKeep, InvalidGeneration, NoSuchGeneration, DamagedFile) as error:
                            full_because = str(error)
                    runs = _stage(snapshot, staging, reuse)
                if reuse is not None:
                    compared = reuse.compared
                    if compared:
                        reuse = reuse.cut_by(runs)
                    try:
                        with timed("segments"):
                            kept = keep_segments(
                                spark, place, staging, reuse, runs, loaded.questions, partitions
                            )
                        reuse = reuse.without(kept.anew)
                    except (InvalidGeneration, NoSuchGeneration, DamagedFile) as error:
                        reuse, full_because = None, str(error)
                    if (kept.anew or reuse is None) and not compared:
                        with timed("catalogue"):
                            runs = _stage(snapshot, staging, reuse)
                named = {name: snapshot.version(name) for name in sorted(staging.namespaces or ())}
                stamps = {name: version.stamp for name, version in named.items() if version and version.stamp}
                versions: dict[str, int | None] = (
                    dict.fromkeys(_with_topics(runs, reuse, named, namespace))
                    if source.static
                    else {name: version.number for name, version in named.items() if version}
                )
            questions = [question for question in loaded.questions if question.namespace in versions]
            left_out = [question for question in loaded.questions if question.namespace not in versions]
            notes = build_notes(
                loaded,
                left_out,
                rows_left_out=snapshot.left_out,
                not_compared=not_compared,
                full_because=full_because,
            )
            check_questions(gates, had, questions, loaded, notes)
            with timed("segments"):
                made = make_segments(
                    spark, place, staging, runs, questions, partitions, reuse.anew if reuse else None
                )
                totals = question_totals(questions, read_tallies(place, [*made.tallies, *kept.tallies]))
            notes += empty_property_notes(totals)
            with timed("publish"):
                segments = [segment.entry for segment in (*made.segments, *kept.segments)]
                check_topics(gates, had, loaded, segments, notes)
                manifest = write_manifest(
                    place,
                    catalogue_id=snapshot.catalogue_id,
                    static=source.static,
                    versions=versions,
                    segments=segments,
                    questions=questions,
                    property_keys=keys,
                    segment_bytes=segment_bytes,
                    stamps=stamps,
                    largest_segment_bytes=largest_segment_bytes,
                )
                verified = {file.name for file in manifest.files if file != manifest.questions}
                published = building.publish(manifest, verified=verified, anew=gates.allow_shrink)
    former = {entry.name for entry in reuse.previous.manifest.segments} if reuse else set()
    result = BuildResult(
        generation=manifest.id,
        number=published.number,
        store=place.uri,
        catalogue=_shown(catalogue),
        manifest=manifest,
        totals=totals,
        loaded=loaded,
        left_out=tuple(left_out),
        staged=sum(sum(run.names.values()) for run in runs),
        duplicates=snapshot.repeats + sum(segment.duplicates for segment in (*made.segments, *kept.segments)),
        system_topics=sum(run.system for run in runs),
        segments_written=sum(segment.new for segment in made.segments)
        + sum(segment.new for segment in kept.segments if segment.entry.name not in former),
        segments_kept=sum(segment.entry.name in former for segment in kept.segments),
        postings_written=sum(segment.new for segment in kept.segments if segment.entry.name in former),
        tasks=len(made.task_seconds),
        task_seconds=made.task_seconds,
        seconds=seconds,
        rows_left_out=snapshot.left_out,
        patterns=_shown(patterns),
        incremental=incremental,
        full_because=full_because,
        builder=this_builder(spark, building.run.id),
        began=began,
        published=published.when,
        differences=differences_to(before, totals, totals_before) if before else None,
        not_compared=not_compared,
        notes=notes,
        matches_export=(
            ""
            if export_matches is None
            else redacted_source(matches_address(export_matches, published.number))
        ),
    )
    try:
        leave_learned(place, published.number, loaded)
        record = {
            **result.kept_record(),
            "digests": {segment.entry.name: segment.digest for segment in (*made.segments, *kept.segments)},
        }
        write_build_record(place, result.generation, record, totals_file(totals))
        if report is not None:
            from broker_core_spark.batch.reports.html_report import html_page

            addressed_file(str(report), store_options).write(html_page(result).encode())
        if history is not None:
            builds, questions_of = history_tables(history)
            write_table(result.history_frame(spark), builds, append=True)
            if history_questions:
                write_table(result.totals_frame(spark), questions_of, append=True)
        if export_parquet is not None:
            write_table(result.totals_frame(spark), export_parquet)
        if export_matches is not None:
            with showing(progress), timed("matches"):
                write_matches(
                    result.matches_frame(spark, store_options, partitions=partitions),
                    matches_address(export_matches, result.number),
                    result.manifest.segments,
                    result.totals.matches,
                )
    except BrokerCoreError as error:
        raise OutputFailed(str(error), result) from error
    return result


def _shown(source: str | DataFrame | RunningBroker | Sequence[str | DataFrame | RunningBroker]) -> str:
    if not isinstance(source, str) and isinstance(source, Sequence):
        return ", ".join(map(_shown, source))
    return redacted_source(source) if isinstance(source, str | RunningBroker) else FRAME


def _reuse(
    place: Store, snapshot: CatalogueSnapshot, loaded: LoadedQuestions, staging: StagingArea
) -> SegmentReuse | None:
    """The parts of the published generation to keep, if there is one. Raises if nothing is kept."""
    # An older generation than the one of an unreadable pointer will do.
    published = next(readable_pointers(place), None)
    if published is None:
        return None
    return reusable_segments(
        read_previous_generation(place, published.generation),
        snapshot,
        loaded.questions,
        property_keys=staging.property_keys,
        target=staging.target,
        largest=staging.largest,
    )


def _stage(snapshot: CatalogueSnapshot, staging: StagingArea, reuse: SegmentReuse | None) -> list[SortedRun]:
    if reuse is None or (reuse.compared and staging.property_keys):  # whose values are compared too
        return snapshot.read(staging)
    if reuse.compared:
        former = zip(reuse.previous.firsts, reuse.previous.manifest.stretches(), strict=True)
        sizes = tuple((first, sum(entry.names for entry in stretch)) for first, stretch in former)
        return snapshot.read(replace(staging, stretches=sizes))
    if not reuse.staged:
        return []
    return snapshot.read(replace(staging, key_ranges=reuse.staged, namespaces=reuse.namespaces))


def _with_topics(
    runs: Sequence[SortedRun], reuse: SegmentReuse | None, named: Iterable[str], given: str | None
) -> list[str]:
    """The named namespaces that have topics now or had some before and were not read, and the ``given`` one."""
    found = {name for run in runs for name, _ in run.names}
    if reuse is not None:
        found |= reuse.unread
    return [name for name in named if name in found or name == given]
