"""Hopfield layers for PyTorch networks, with a choice of similarity and separation."""

from ahop.nn.bags import AttentionPooling, BagNetwork, MaxPooling, MeanPooling, pad
from ahop.nn.conversion import from_attention, from_hflayers
from ahop.nn.hopfield import Hopfield
from ahop.nn.learned import HopfieldLayer, HopfieldPooling
from ahop.nn.rows import RowEmbedding
from ahop.nn.transformer import EnergyNorm, EnergyTransformer

__all__ = [
    "AttentionPooling",
    "BagNetwork",
    "EnergyNorm",
    "EnergyTransformer",
    "Hopfield",
    "HopfieldLayer",
    "HopfieldPooling",
    "MaxPooling",
    "MeanPooling",
    "RowEmbedding",
    "from_attention",
    "from_hflayers",
    "pad",
]
