"""The interface of plugins: hooks, requests, results."""
