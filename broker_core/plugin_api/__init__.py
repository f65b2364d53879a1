"""What plugins implement and what they are given: hooks, requests, results."""
