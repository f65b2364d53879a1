"""`broker-core kafka ...`: topics, configs and nodes of a Kafka server; users and ACLs of its clients."""
