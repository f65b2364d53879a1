"""Making segments: which task makes which, matching, and what each question comes to."""
