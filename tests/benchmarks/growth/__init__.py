"""Growth: time and memory of a server by the number of topics and of namespaces (``make bench-growth``)."""
