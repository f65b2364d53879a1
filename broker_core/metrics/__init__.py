"""Metrics of a broker and its plugins, for Prometheus, and the most frequent questions."""
