"""Speed and memory of the batch: ``make bench-spark``."""
