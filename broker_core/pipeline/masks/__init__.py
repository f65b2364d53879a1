"""From an accepted listing to what its asker may see: rules, pattern, masks, hash."""
