"""Spark: its Java, its session, and Python functions on partitions."""
