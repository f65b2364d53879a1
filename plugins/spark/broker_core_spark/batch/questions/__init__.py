"""The questions to precompute: read, checked, each once."""
