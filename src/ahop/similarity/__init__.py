"""How alike are a pattern and a query: fixed similarities, and ones that learn."""

from importlib import import_module
from pkgutil import iter_modules

from ahop.similarity.base import Decomposable, Similarity
from ahop.similarity.bridge import Adapter, Bridge
from ahop.similarity.codes import InnerProduct
from ahop.similarity.corruption import Corruption
from ahop.similarity.density import Density
from ahop.similarity.families.correlated.model import Correlated
from ahop.similarity.families.floor.model import Floor, OneHot
from ahop.similarity.families.gain import Gain
from ahop.similarity.families.independent.likelihood import Likelihood
from ahop.similarity.families.independent.regimes import Regimes
from ahop.similarity.families.moved.bent import Bent
from ahop.similarity.families.moved.model import Moved
from ahop.similarity.families.nearest.model import Nearest, NearestCodes
from ahop.similarity.families.transformed import Transformed
from ahop.similarity.fixed import Cosine, Distance, Dot, Euclidean, Manhattan, Matches, Precision, Unified
from ahop.similarity.footprint import Adaptive, footprint, k_optimal
from ahop.similarity.gaussian import Gaussian
from ahop.similarity.known import TrueLikelihood
from ahop.similarity.mahalanobis import Mahalanobis
from ahop.similarity.perceptron import Perceptron
from ahop.similarity.whitened import Whitened

# A new similarity is one file in this folder: once it is read, its class is known by the name that memories take.
# Names of this module are written out above, because type checkers know no others.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Adapter",
    "Adaptive",
    "Bent",
    "Bridge",
    "Correlated",
    "Corruption",
    "Cosine",
    "Decomposable",
    "Density",
    "Distance",
    "Dot",
    "Euclidean",
    "Floor",
    "Gain",
    "Gaussian",
    "InnerProduct",
    "Likelihood",
    "Mahalanobis",
    "Manhattan",
    "Matches",
    "Moved",
    "Nearest",
    "NearestCodes",
    "OneHot",
    "Perceptron",
    "Precision",
    "Regimes",
    "Similarity",
    "Transformed",
    "TrueLikelihood",
    "Unified",
    "Whitened",
    "footprint",
    "k_optimal",
]
