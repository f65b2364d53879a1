"""Spark itself: the Java that it runs on, a session, and Python functions on partitions."""
