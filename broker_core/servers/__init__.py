"""The servers: Pulsar's binary protocol, HTTP, and the admission of connections."""
