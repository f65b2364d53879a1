"""Changes of topics: the database's change log, LISTEN/NOTIFY, and versions that went back after a restore."""
