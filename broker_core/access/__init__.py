"""Access: identities, authentication, and the questions to gates and rules before a request is served."""
