"""Listings of Kafka's protocol side by side with a real broker: ``python -m tests.benchmarks.kafka``."""
