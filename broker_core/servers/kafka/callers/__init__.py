"""The caller of a request: its identity, its namespace, its rights by access control lists."""
