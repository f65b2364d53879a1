"""Changes of a listing: splices and differences, which cost the chunks that they touch."""
