"""Precomputed topic listings of known patterns over the whole catalogue: a plugin of broker-core."""
