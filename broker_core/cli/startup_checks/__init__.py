"""The checks of `broker-core check` before a server starts: nothing is changed, and every check has a timeout."""
