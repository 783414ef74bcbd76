"""Hopfield layers for PyTorch networks, with a choice of similarity and separation."""

from ahop.nn.bags import AttentionPooling, BagNetwork, MaxPooling, MeanPooling, pad
from ahop.nn.hopfield import Hopfield
from ahop.nn.learned import HopfieldLayer, HopfieldPooling

__all__ = [
    "AttentionPooling",
    "BagNetwork",
    "Hopfield",
    "HopfieldLayer",
    "HopfieldPooling",
    "MaxPooling",
    "MeanPooling",
    "pad",
]
