"""Reports of listings: metrics, observers, traces, the access log, denials."""
