"""Data sets that come with baselines of their own: one file a set, which joins by being there."""

from ahop._registry import read_all

read_all(__name__, __path__)
