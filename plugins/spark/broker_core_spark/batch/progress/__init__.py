"""Progress of a running build: for people, and descriptions of its jobs for Spark."""
