"""What people do with a whole corpus: read it, find its near-duplicates, write the survivors."""
