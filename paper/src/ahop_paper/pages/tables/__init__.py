"""Results as tables: one function a table, which makes it of the reports of its experiments.

Commands print what their table's function makes of the report that they have in hand, and documents show what it makes
of the reports in ``results/``: rows and columns are decided here, once. A cell whose figure is not in the report stays
empty.
"""

from ahop_paper.pages.tables.classifiers import accuracies, areas, bags, checks, trained
from ahop_paper.pages.tables.real_data import calibration, never_behind, real, real_models
from ahop_paper.pages.tables.registry import TABLES, Table, made, source
from ahop_paper.pages.tables.retrieval import modalities, settings, worlds, worlds_in_full
from ahop_paper.pages.tables.speed import ratios, ratios_to_trees, timing
from ahop_paper.pages.tables.trust import trust
from ahop_paper.pages.tables.what_we_found import ablations, claims, generator_errors, generators
from ahop_paper.pages.tables.zoo import blends, zoo, zoo_advice, zoo_capacity, zoo_costs, zoo_trust

__all__ = [
    "TABLES",
    "Table",
    "ablations",
    "accuracies",
    "areas",
    "bags",
    "blends",
    "calibration",
    "checks",
    "claims",
    "generator_errors",
    "generators",
    "made",
    "modalities",
    "never_behind",
    "ratios",
    "ratios_to_trees",
    "real",
    "real_models",
    "settings",
    "source",
    "timing",
    "trained",
    "trust",
    "worlds",
    "worlds_in_full",
    "zoo",
    "zoo_advice",
    "zoo_capacity",
    "zoo_costs",
    "zoo_trust",
]
