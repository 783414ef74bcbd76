"""Corruptions that can be drawn and scored, and the Oracle that knows them."""

from ahop.variants.base import Samples, Variant
from ahop.variants.elementary import Biased, Masked, Noisy, Scaled
from ahop.variants.mixed import Compose, Either, Mixed
from ahop.variants.oracle import Oracle

__all__ = ["Biased", "Compose", "Either", "Masked", "Mixed", "Noisy", "Oracle", "Samples", "Scaled", "Variant"]
