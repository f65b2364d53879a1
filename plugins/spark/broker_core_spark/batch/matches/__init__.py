"""The table of matches: every topic of every question, written by tasks of Spark."""
