"""The lookup client's connection and requests in Pulsar's binary protocol."""
