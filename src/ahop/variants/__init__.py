"""Corruptions that can be drawn and scored."""

from ahop.variants.base import Samples, Variant
from ahop.variants.beyond import Correlated, Dropped, Gained, Growing, Quantised, Rotated, Swapped
from ahop.variants.elementary import Biased, Masked, Noisy, Scaled
from ahop.variants.mixed import Compose, Either, Mixed

__all__ = [
    "Biased",
    "Compose",
    "Correlated",
    "Dropped",
    "Either",
    "Gained",
    "Growing",
    "Masked",
    "Mixed",
    "Noisy",
    "Quantised",
    "Rotated",
    "Samples",
    "Scaled",
    "Swapped",
    "Variant",
]
