"""Topics in requests and answers: listed, named, new, with their configs."""
