"""SCRAM (RFC 5802, RFC 7677) as Kafka's SASL mechanisms have it: stored credentials, and both sides of the exchange."""
