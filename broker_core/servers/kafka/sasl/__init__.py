"""SASL of Kafka clients: the mechanisms, the checks behind them, and the state of each connection."""
