"""The format of a generation's files: bytes alone, no store. The reference specifies it."""

from __future__ import annotations

from broker_core_spark.format.canonical_question import (
    ANY_LENGTH,
    DOMAIN_ORDER,
    KEY_BYTES,
    CanonicalQuestion,
    NameSelector,
    canonical_json,
    line_key,
    required_selectors,
)
from broker_core_spark.format.carried_postings import rows_that_came
from broker_core_spark.format.framed_file import FramedFile
from broker_core_spark.format.manifest import MANIFEST_LIMIT, FileEntry, Manifest, SegmentEntry, manifest_name
from broker_core_spark.format.names_writer import FieldParts, NamesWriter
from broker_core_spark.format.picked_words import Matches, joined_rows, stretches
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import (
    PostingsWriter,
    RunPostings,
    StoredPostings,
    entry_index,
    joined_entries,
    read_postings,
)
from broker_core_spark.format.postings_merge import merge_postings
from broker_core_spark.format.questions_file import question_lines, read_questions
from broker_core_spark.format.segment_boundaries import (
    LARGEST_FACTOR,
    SEGMENT_BYTES,
    begins_segment,
    cut_levels,
    piece_starts,
)
from broker_core_spark.format.segment_checks import (
    NamePlace,
    SegmentChecks,
    check_first_names,
    last_place,
)
from broker_core_spark.format.segment_layout import (
    ENTRY,
    HEADER,
    KIND_RANGE,
    KIND_ROWS,
    NAMES,
)
from broker_core_spark.format.segment_patch import (
    PATCHES,
    RunPatch,
    SegmentPatch,
    patch_limit,
    patch_name,
    patched_segment,
)
from broker_core_spark.format.segment_reader import SegmentRun, segment_runs
from broker_core_spark.format.selector_keys import NO_SELECTORS, SelectorKeys, key_order, split_keys

__all__ = [
    "ANY_LENGTH",
    "DOMAIN_ORDER",
    "ENTRY",
    "HEADER",
    "KEY_BYTES",
    "KIND_RANGE",
    "KIND_ROWS",
    "LARGEST_FACTOR",
    "MANIFEST_LIMIT",
    "NAMES",
    "NO_SELECTORS",
    "PATCHES",
    "SEGMENT_BYTES",
    "CanonicalQuestion",
    "FieldParts",
    "FileEntry",
    "FramedFile",
    "Manifest",
    "Matches",
    "NamePlace",
    "NameSelector",
    "NamesWriter",
    "PostingsCollector",
    "PostingsWriter",
    "RunPatch",
    "RunPostings",
    "SegmentChecks",
    "SegmentEntry",
    "SegmentPatch",
    "SegmentRun",
    "SelectorKeys",
    "StoredPostings",
    "begins_segment",
    "canonical_json",
    "check_first_names",
    "cut_levels",
    "entry_index",
    "joined_entries",
    "joined_rows",
    "key_order",
    "last_place",
    "line_key",
    "manifest_name",
    "merge_postings",
    "patch_limit",
    "patch_name",
    "patched_segment",
    "piece_starts",
    "question_lines",
    "read_postings",
    "read_questions",
    "required_selectors",
    "rows_that_came",
    "segment_runs",
    "split_keys",
    "stretches",
]
