"""What stores, retrieves, recalls, grows and is kept: one base, and a short recipe for each network."""

from ahop._checks import STRANGER
from ahop.memories.adaptive import AdaptiveHopfield
from ahop.memories.base import AssociativeMemory, Recall
from ahop.memories.bayesian import BayesianHopfield
from ahop.memories.binary import ClassicalHopfield, DenseHopfield, ExponentialHopfield
from ahop.memories.checking import Certificate, Question
from ahop.memories.continuous import ModernHopfield, SparseHopfield, UniversalHopfield
from ahop.memories.evidence import Evidence, evidence_by_column
from ahop.memories.fourier import FourierHopfield
from ahop.memories.gaussian import GaussianHopfield
from ahop.memories.kernel import KernelHopfield
from ahop.memories.matching import Matching
from ahop.memories.moments import Memory
from ahop.memories.names import create
from ahop.memories.oracle import Oracle
from ahop.memories.sequence import SequenceHopfield
from ahop.memories.storage import load

__all__ = [
    "STRANGER",
    "AdaptiveHopfield",
    "AssociativeMemory",
    "BayesianHopfield",
    "Certificate",
    "ClassicalHopfield",
    "DenseHopfield",
    "Evidence",
    "ExponentialHopfield",
    "FourierHopfield",
    "GaussianHopfield",
    "KernelHopfield",
    "Matching",
    "Memory",
    "ModernHopfield",
    "Oracle",
    "Question",
    "Recall",
    "SequenceHopfield",
    "SparseHopfield",
    "UniversalHopfield",
    "create",
    "evidence_by_column",
    "load",
]
