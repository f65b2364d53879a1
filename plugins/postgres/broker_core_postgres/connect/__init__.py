"""Connecting to PostgreSQL: addresses and passwords, pools of connections, replicas, what failures mean."""
