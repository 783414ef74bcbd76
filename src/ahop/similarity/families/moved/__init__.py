"""Maps between two spaces."""
