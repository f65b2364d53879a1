"""A listing as Arrow columns: its names, encoded fields, hash, selections, pages and details."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.listing.changes.listing_splice import ListingChange, splicing
    from broker_core.listing.chunks.block_hashes import BlockHashes
    from broker_core.listing.chunks.build_chunks import chunk_size
    from broker_core.listing.chunks.chunk import Chunk
    from broker_core.listing.chunks.chunk_forms import SortedForms
    from broker_core.listing.chunks.chunk_stream import ChunkStream
    from broker_core.listing.chunks.property_codes import NO_VALUE, PropertyCodes
    from broker_core.listing.details import DETAIL_TYPES, TOPIC, Details, check_values, checked_wants
    from broker_core.listing.encoded_names import EncodedNames
    from broker_core.listing.fields.search_fields import search_fields
    from broker_core.listing.fields.topic_field import TAG, MalformedFields, read_varint, varint, walk_fields
    from broker_core.listing.fields_reader import FieldsReader
    from broker_core.listing.hashes.joined_crcs import TextCrc
    from broker_core.listing.hashes.topics_hash import crc_text, extend_crc, topics_hash, utf16_key
    from broker_core.listing.listing import (
        Listing,
        Selection,
        data_of,
        listing_of,
        part_of,
        rows_key_of,
        selection_of,
        unhashed_bytes,
    )
    from broker_core.listing.listing_data import ListingData, RowsKey
    from broker_core.listing.listing_encoder import ListingEncoder
    from broker_core.listing.listing_part import ListingPart
    from broker_core.listing.pages.names_of_topic import few_topic_names, partitions_of, topic_names
    from broker_core.listing.pages.page import NO_PARTITION, Page, Position
    from broker_core.listing.pages.page_order import first_out_of_order, in_page_order, topic_ends
    from broker_core.listing.pages.page_walk import PageBlock, PageNames, PageStart, PageWalk
    from broker_core.listing.properties.property_values import (
        count_texts,
        count_values,
        has_property_values,
        is_quick_to_select,
        select_by_properties,
        values_size,
    )
    from broker_core.listing.rendered.details import (
        SHOWN_DETAILS,
        detail_arrow,
        detail_json_items,
        detail_ndjson,
        detail_schema,
        detail_size,
    )
    from broker_core.listing.rendered.name_blocks import RenderedNames
    from broker_core.listing.rendered.names import (
        LineFeedInName,
        names_arrow,
        names_json_items,
        names_ndjson,
        names_text,
        partitioned_topics_json_items,
    )
    from broker_core.listing.rendered.pieces import BLOCK, BlockSize, arrow_stream
    from broker_core.listing.selections.rows_by_domain import rows_by_domain
    from broker_core.listing.selections.selection_difference import (
        difference_bytes,
        known_changes,
        selection_difference,
    )
    from broker_core.listing.selections.selection_search import matching_scan
    from broker_core.listing.selections.tagged_fields import tagged_fields
    from broker_core.listing.selections.topic_filter import TopicFilter, TopicPatterns, filtered
    from broker_core.listing.topic_table.topic_chunk import RenderedChunk, TopicChunk, TopicRow
    from broker_core.listing.topic_table.topic_table import TableChange, TopicTable

__all__ = [
    "BLOCK",
    "DETAIL_TYPES",
    "NO_PARTITION",
    "NO_VALUE",
    "SHOWN_DETAILS",
    "TAG",
    "TOPIC",
    "BlockHashes",
    "BlockSize",
    "Chunk",
    "ChunkStream",
    "Details",
    "EncodedNames",
    "FieldsReader",
    "LineFeedInName",
    "Listing",
    "ListingChange",
    "ListingData",
    "ListingEncoder",
    "ListingPart",
    "MalformedFields",
    "Page",
    "PageBlock",
    "PageNames",
    "PageStart",
    "PageWalk",
    "Position",
    "PropertyCodes",
    "RenderedChunk",
    "RenderedNames",
    "RowsKey",
    "Selection",
    "SortedForms",
    "TableChange",
    "TextCrc",
    "TopicChunk",
    "TopicFilter",
    "TopicPatterns",
    "TopicRow",
    "TopicTable",
    "arrow_stream",
    "check_values",
    "checked_wants",
    "chunk_size",
    "count_texts",
    "count_values",
    "crc_text",
    "data_of",
    "detail_arrow",
    "detail_json_items",
    "detail_ndjson",
    "detail_schema",
    "detail_size",
    "difference_bytes",
    "extend_crc",
    "few_topic_names",
    "filtered",
    "first_out_of_order",
    "has_property_values",
    "in_page_order",
    "is_quick_to_select",
    "known_changes",
    "listing_of",
    "matching_scan",
    "names_arrow",
    "names_json_items",
    "names_ndjson",
    "names_text",
    "part_of",
    "partitioned_topics_json_items",
    "partitions_of",
    "read_varint",
    "rows_by_domain",
    "rows_key_of",
    "search_fields",
    "select_by_properties",
    "selection_difference",
    "selection_of",
    "splicing",
    "tagged_fields",
    "topic_ends",
    "topic_names",
    "topics_hash",
    "unhashed_bytes",
    "utf16_key",
    "values_size",
    "varint",
    "walk_fields",
]

# A command that needs a name of it does not wait for all the others.
__getattr__ = lazy_exports(
    __name__,
    {
        "BLOCK": ".rendered.pieces",
        "BlockHashes": ".chunks.block_hashes",
        "BlockSize": ".rendered.pieces",
        "ListingChange": ".changes.listing_splice",
        "Chunk": ".chunks.chunk",
        "ChunkStream": ".chunks.chunk_stream",
        "DETAIL_TYPES": ".details",
        "Details": ".details",
        "EncodedNames": ".encoded_names",
        "FieldsReader": ".fields_reader",
        "LineFeedInName": ".rendered.names",
        "Listing": ".listing",
        "ListingData": ".listing_data",
        "ListingEncoder": ".listing_encoder",
        "MalformedFields": ".fields.topic_field",
        "NO_PARTITION": ".pages.page",
        "NO_VALUE": ".chunks.property_codes",
        "Page": ".pages.page",
        "PageBlock": ".pages.page_walk",
        "PageNames": ".pages.page_walk",
        "PageStart": ".pages.page_walk",
        "PageWalk": ".pages.page_walk",
        "ListingPart": ".listing_part",
        "Position": ".pages.page",
        "PropertyCodes": ".chunks.property_codes",
        "RenderedChunk": ".topic_table.topic_chunk",
        "RenderedNames": ".rendered.name_blocks",
        "RowsKey": ".listing_data",
        "SHOWN_DETAILS": ".rendered.details",
        "Selection": ".listing",
        "SortedForms": ".chunks.chunk_forms",
        "TAG": ".fields.topic_field",
        "TOPIC": ".details",
        "TextCrc": ".hashes.joined_crcs",
        "TableChange": ".topic_table.topic_table",
        "TopicChunk": ".topic_table.topic_chunk",
        "TopicFilter": ".selections.topic_filter",
        "TopicPatterns": ".selections.topic_filter",
        "TopicRow": ".topic_table.topic_chunk",
        "TopicTable": ".topic_table.topic_table",
        "arrow_stream": ".rendered.pieces",
        "check_values": ".details",
        "checked_wants": ".details",
        "chunk_size": ".chunks.build_chunks",
        "count_texts": ".properties.property_values",
        "count_values": ".properties.property_values",
        "values_size": ".properties.property_values",
        "crc_text": ".hashes.topics_hash",
        "data_of": ".listing",
        "detail_arrow": ".rendered.details",
        "detail_json_items": ".rendered.details",
        "detail_ndjson": ".rendered.details",
        "detail_schema": ".rendered.details",
        "detail_size": ".rendered.details",
        "difference_bytes": ".selections.selection_difference",
        "extend_crc": ".hashes.topics_hash",
        "few_topic_names": ".pages.names_of_topic",
        "filtered": ".selections.topic_filter",
        "first_out_of_order": ".pages.page_order",
        "has_property_values": ".properties.property_values",
        "in_page_order": ".pages.page_order",
        "is_quick_to_select": ".properties.property_values",
        "known_changes": ".selections.selection_difference",
        "listing_of": ".listing",
        "matching_scan": ".selections.selection_search",
        "names_arrow": ".rendered.names",
        "names_json_items": ".rendered.names",
        "names_ndjson": ".rendered.names",
        "names_text": ".rendered.names",
        "part_of": ".listing",
        "partitioned_topics_json_items": ".rendered.names",
        "partitions_of": ".pages.names_of_topic",
        "read_varint": ".fields.topic_field",
        "rows_by_domain": ".selections.rows_by_domain",
        "rows_key_of": ".listing",
        "search_fields": ".fields.search_fields",
        "select_by_properties": ".properties.property_values",
        "selection_difference": ".selections.selection_difference",
        "selection_of": ".listing",
        "splicing": ".changes.listing_splice",
        "tagged_fields": ".selections.tagged_fields",
        "topic_ends": ".pages.page_order",
        "topic_names": ".pages.names_of_topic",
        "topics_hash": ".hashes.topics_hash",
        "unhashed_bytes": ".listing",
        "utf16_key": ".hashes.topics_hash",
        "varint": ".fields.topic_field",
        "walk_fields": ".fields.topic_field",
    },
)
