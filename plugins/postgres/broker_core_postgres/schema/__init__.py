"""The schema of the database: migrations, their lock, backup and way back, and the index of trigrams."""

from broker_core_postgres.schema.auto_migrate import AutoMigration, how_to_go_back, migrate_if_older
from broker_core_postgres.schema.backup import find_backup
from broker_core_postgres.schema.migration_lock import MigrationFailed
from broker_core_postgres.schema.roles import ROLES
from broker_core_postgres.schema.roll_back import MigratedBack, migrate_back
from broker_core_postgres.schema.run_migrations import MigrationResult, may_migrate, migrate
from broker_core_postgres.schema.schema_version import (
    MIGRATE_COMMAND,
    SchemaMismatch,
    SchemaTooOld,
    check_applied,
    check_schema,
    migrations,
    read_applied,
)
from broker_core_postgres.schema.trigram_index import IndexParts, read_parts, read_trigram_index

__all__ = [
    "MIGRATE_COMMAND",
    "ROLES",
    "AutoMigration",
    "IndexParts",
    "MigratedBack",
    "MigrationFailed",
    "MigrationResult",
    "SchemaMismatch",
    "SchemaTooOld",
    "check_applied",
    "check_schema",
    "find_backup",
    "how_to_go_back",
    "may_migrate",
    "migrate",
    "migrate_back",
    "migrate_if_older",
    "migrations",
    "read_applied",
    "read_parts",
    "read_trigram_index",
]
