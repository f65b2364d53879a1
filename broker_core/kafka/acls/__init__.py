"""Kafka's access control lists."""
