"""The commands for a running server, which ask its HTTP port: its clients, activity, held listings, settings."""
