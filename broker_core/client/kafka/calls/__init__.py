"""The operations of the admin client: a module for each, which asks the APIs that it takes."""
