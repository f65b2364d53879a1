"""Files of topics: import and export."""
