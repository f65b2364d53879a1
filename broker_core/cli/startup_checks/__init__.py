"""What `broker-core check` looks at before a server starts: nothing is changed, and every check has a timeout."""
