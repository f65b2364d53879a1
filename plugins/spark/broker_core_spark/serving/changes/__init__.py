"""What changed in the catalogue since the generation, and answers with it."""
