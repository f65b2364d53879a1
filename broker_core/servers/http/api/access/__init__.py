"""Kafka's users and access control lists over HTTP, for super roles."""
