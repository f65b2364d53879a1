"""`python -m tests.benchmarks.postgres`: listings from PostgreSQL through the whole protocol."""
