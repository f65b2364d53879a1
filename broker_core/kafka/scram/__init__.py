"""SCRAM (RFC 5802, RFC 7677) for Kafka's SASL mechanisms: stored credentials, and both sides of the exchange."""
