"""Corruptions that hit every dimension by itself."""
