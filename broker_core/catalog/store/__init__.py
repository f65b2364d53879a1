"""The catalogue's SQLite file: schema, migrations, versions, change log, and reading it."""
