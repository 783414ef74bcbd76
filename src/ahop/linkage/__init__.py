"""Record linkage: which stored row each incoming row is, how sure that is, and what would do without a memory."""

from ahop.linkage.adapt import Adapted, adapted
from ahop.linkage.alternatives import Alternative
from ahop.linkage.checks import answered, asked, check_page
from ahop.linkage.correct import Corrected, corrected
from ahop.linkage.correction import Correction
from ahop.linkage.duration import forecast, in_words
from ahop.linkage.filled import answers_in, checked_answers
from ahop.linkage.linking import Linkage, link, with_reliability
from ahop.linkage.model import Judged, Model
from ahop.linkage.page import page
from ahop.linkage.pairs import known_pairs
from ahop.linkage.words import lines, verdict

__all__ = [
    "Adapted",
    "Alternative",
    "Corrected",
    "Correction",
    "Judged",
    "Linkage",
    "Model",
    "adapted",
    "answered",
    "answers_in",
    "asked",
    "check_page",
    "checked_answers",
    "corrected",
    "forecast",
    "in_words",
    "known_pairs",
    "lines",
    "link",
    "page",
    "verdict",
    "with_reliability",
]
