"""What a build tells people: a page of HTML, a table."""
