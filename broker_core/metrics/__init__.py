"""What a broker and its plugins count, for Prometheus, and the most frequent questions."""
