"""Topics by name, each with the number of its partitions and its id, in chunks that versions share."""

from __future__ import annotations

from broker_core.listing.topic_table.topic_chunk import RenderedChunk, TopicChunk, TopicRow
from broker_core.listing.topic_table.topic_table import Place, TableChange, TopicTable

__all__ = ["Place", "RenderedChunk", "TableChange", "TopicChunk", "TopicRow", "TopicTable"]
