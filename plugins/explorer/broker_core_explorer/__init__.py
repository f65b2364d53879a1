"""A page in the browser to look at topics, and at the server that lists them: a plugin of broker-core."""
