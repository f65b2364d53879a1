"""What `broker-core check` looks at before a server starts: nothing is changed, and nobody is waited for long."""
