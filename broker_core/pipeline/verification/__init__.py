"""What listers and describers returned, checked before anything of it is used: names, pages, details, claims."""
