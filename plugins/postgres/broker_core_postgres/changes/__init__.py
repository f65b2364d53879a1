"""What changed in the database: its log of changes, LISTEN/NOTIFY, and versions that went back."""
