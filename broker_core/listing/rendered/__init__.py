"""Names and details of an answer as bytes for HTTP: text, JSON, NDJSON, Arrow streams, piece by piece."""
