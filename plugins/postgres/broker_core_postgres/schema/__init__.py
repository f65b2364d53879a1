"""The schema of the database: migrations, their lock, backup and way back, and the index of trigrams."""
