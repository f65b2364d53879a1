"""Topic listings from a PostgreSQL index, by pattern and by properties: a plugin of broker-core."""
