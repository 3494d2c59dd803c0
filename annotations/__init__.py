"""Where records, scores and assignments live: one SQLite file, and what is done with it."""
