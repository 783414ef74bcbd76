"""Likelihoods that are learned, one family of corruptions each, and the choice among them."""
