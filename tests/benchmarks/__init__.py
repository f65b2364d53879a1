"""How fast listings are, beside a real Pulsar broker where there is one: ``python -m tests.benchmarks``."""
