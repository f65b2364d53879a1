"""Users and passwords of an htpasswd file."""
