"""`broker-core topics ...`: the topics of the catalogue. A server that runs on the same file sees every change."""
