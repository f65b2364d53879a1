"""Models of Kafka's administration, without sockets and without storage."""
