"""Corruptions that can be drawn and scored."""

from ahop.variants.base import Samples, Variant
from ahop.variants.elementary import Biased, Masked, Noisy, Scaled
from ahop.variants.mixed import Compose, Either, Mixed

__all__ = ["Biased", "Compose", "Either", "Masked", "Mixed", "Noisy", "Samples", "Scaled", "Variant"]
