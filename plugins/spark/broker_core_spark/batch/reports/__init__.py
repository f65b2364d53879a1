"""Reports of a build: an HTML page and a Parquet table."""
