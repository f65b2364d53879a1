"""The lookup client's requests over HTTP: to this server, or to the web service of a Pulsar broker."""
