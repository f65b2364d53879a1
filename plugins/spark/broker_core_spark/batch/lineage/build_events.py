"""The events of a build: START, and COMPLETE, FAIL or ABORT, with its datasets and their counts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from broker_core_spark.batch.builder import plugin_version
from broker_core_spark.batch.lineage.dataset_names import dataset_name
from broker_core_spark.batch.matches.match_rows import MATCH_SCHEMA
from broker_core_spark.batch.reports.build_history import HISTORY_SCHEMA
from broker_core_spark.batch.reports.parquet_export import TOTALS_SCHEMA

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent
    from openlineage.client.facet_v2 import DatasetFacet, OutputDatasetFacet

    from broker_core_spark.batch.build_result import BuildResult

__all__ = ["BuildEvents"]

_INTEGRATION: Final = "BROKER_CORE"
#: Counts of the result that are tags of the run.
_TAGS: Final = (
    "generation",
    "number",
    "topics",
    "questions",
    "matches",
    "refused",
    "coverage",
    "segments_written",
)


@dataclass(frozen=True, slots=True)
class BuildEvents:
    """The events of the run with the id ``run`` of a build, whose job is in ``namespace``.

    The addresses are those of the options. ``parent`` is the run that started it, as ``NAMESPACE/JOB/RUN``.
    """

    namespace: str
    run: str
    store: str
    catalogue: str
    patterns: Sequence[str]
    export_parquet: str | None = None
    export_matches: str | None = None
    history: str | None = None
    parent: str | None = None

    def started(self) -> RunEvent:
        """The event of the beginning."""
        return self._event("START", self._inputs(None), self._outputs(None))

    def completed(self, result: BuildResult) -> RunEvent:
        """The event of a published generation."""
        from openlineage.client.facet_v2 import processing_engine_run, tags_run

        record = result.record()
        tags = [
            tags_run.TagsRunFacetFields(name, str(record[name]), _INTEGRATION)
            for name in _TAGS
            if record[name] is not None
        ]
        facets: dict[str, Any] = {"tags": tags_run.TagsRunFacet(tags)}
        if result.builder is not None:
            facets["processing_engine"] = processing_engine_run.ProcessingEngineRunFacet(
                version=result.builder.spark, name="spark", openlineageAdapterVersion=result.builder.version
            )
        return self._event("COMPLETE", self._inputs(result), self._outputs(result), facets)

    def failed(self, error: BaseException, *, aborted: bool = False) -> RunEvent:
        """The event of an error, or of an end by a signal (``aborted``)."""
        from openlineage.client.facet_v2 import error_message_run

        message = str(error) or type(error).__name__
        facets = {"errorMessage": error_message_run.ErrorMessageRunFacet(message[:2000], "PYTHON")}
        return self._event(
            "ABORT" if aborted else "FAIL", self._inputs(None), self._outputs(None), {} if aborted else facets
        )

    def _event(
        self,
        state: str,
        inputs: list[InputDataset],
        outputs: list[OutputDataset],
        facets: Mapping[str, Any] | None = None,
    ) -> RunEvent:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState, set_producer
        from openlineage.client.facet_v2 import job_type_job, parent_run

        producer = f"urn:broker-core-spark:{plugin_version()}"
        set_producer(producer)
        run_facets = dict(facets or {})
        if self.parent is not None:
            namespace, name, run = self.parent.rsplit("/", 2)
            run_facets["parent"] = parent_run.ParentRunFacet(
                run=parent_run.Run(run), job=parent_run.Job(namespace, name)
            )
        kind = job_type_job.JobTypeJobFacet(processingType="BATCH", integration=_INTEGRATION, jobType="JOB")
        return RunEvent(
            eventType=RunState[state],
            eventTime=datetime.now(UTC).isoformat(),
            run=Run(str(uuid.uuid5(uuid.NAMESPACE_OID, self.run)), run_facets),
            job=Job(self.namespace, f"spark build {'/'.join(dataset_name(self.store))}", {"jobType": kind}),
            producer=producer,
            inputs=inputs,
            outputs=outputs,
        )

    def _inputs(self, result: BuildResult | None) -> list[InputDataset]:
        from openlineage.client.event_v2 import InputDataset
        from openlineage.client.facet_v2 import input_statistics_input_dataset as statistics

        found = [InputDataset(*dataset_name(address)) for address in (self.catalogue, *self.patterns)]
        if result is not None:
            read = statistics.InputStatisticsInputDatasetFacet(rowCount=result.staged)
            found[0].inputFacets = {"inputStatistics": read}
        return found

    def _outputs(self, result: BuildResult | None) -> list[OutputDataset]:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import dataset_version_dataset, schema_dataset
        from openlineage.client.generated.output_statistics_output_dataset import (
            OutputStatisticsOutputDatasetFacet,
        )

        places: list[tuple[str | None, pa.Schema | None]] = [
            (self.store, None),
            (self.export_parquet, TOTALS_SCHEMA),
            (self.export_matches, MATCH_SCHEMA),
            (self.history, HISTORY_SCHEMA),
        ]
        written = [OutputStatisticsOutputDatasetFacet() for _ in places]
        if result is not None:
            files, questions = result.manifest.files, len(result.totals)
            written = [
                OutputStatisticsOutputDatasetFacet(questions, sum(file.size for file in files), len(files)),
                OutputStatisticsOutputDatasetFacet(questions),
                OutputStatisticsOutputDatasetFacet(result.totals.matches),
                OutputStatisticsOutputDatasetFacet(1),
            ]
        found = []
        for (address, schema), counts in zip(places, written, strict=True):
            if address is None:
                continue
            facets: dict[str, DatasetFacet] = {}
            statistics: dict[str, OutputDatasetFacet] = {}
            if schema is not None:
                fields = [schema_dataset.SchemaDatasetFacetFields(one.name, str(one.type)) for one in schema]
                facets["schema"] = schema_dataset.SchemaDatasetFacet(fields)
            if result is not None:
                facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(result.generation)
                statistics["outputStatistics"] = counts
            found.append(OutputDataset(*dataset_name(address), facets=facets, outputFacets=statistics))
        return found
