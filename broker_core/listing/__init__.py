"""A listing as Arrow columns: its names, encoded fields, hash, selections, pages and details."""
