"""What a build shows while it runs: progress for people, and descriptions of its jobs for Spark."""
