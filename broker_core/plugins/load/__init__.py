"""Finding plugins, checking them and reading their options."""
