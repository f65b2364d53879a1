"""Connecting to PostgreSQL: addresses and passwords, pools of connections, replicas, and the meaning of failures."""
