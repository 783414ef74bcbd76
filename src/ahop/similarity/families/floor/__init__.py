"""Values that are often at a floor."""
