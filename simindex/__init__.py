"""simindex: SQLite for near-duplicates."""
