"""The questions to precompute: reading, checking, removing duplicates."""
