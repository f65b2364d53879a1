"""What may be shown of other people's text: without control characters, without secrets."""
