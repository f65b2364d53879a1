"""Chunks of a listing: some thousand names each with their encoded fields, sums and property codes."""
