"""Benchmarks of listings, optionally against a real Pulsar broker: ``python -m tests.benchmarks``."""
