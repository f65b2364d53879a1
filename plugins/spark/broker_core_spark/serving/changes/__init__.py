"""Changes of the catalogue since the generation: finding them, holding them, putting them into answers."""
