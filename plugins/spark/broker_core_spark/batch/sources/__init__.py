"""Sources of topics: SQLite, PostgreSQL, Parquet and tables, files of names."""
