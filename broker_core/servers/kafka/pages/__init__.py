"""Pages of answers: their start and limit, rows as units in order, kept parts for the next page."""
