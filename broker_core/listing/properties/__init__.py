"""Properties of the listed topics: values, counts, and the topics that have asked ones."""
