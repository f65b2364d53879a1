"""What tests of several parts share; nothing here starts anything by being imported."""
