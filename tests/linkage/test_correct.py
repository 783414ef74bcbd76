import numpy as np
import torch

from ahop.linkage import correct
from ahop.tables import Table


def test_pairs_of_equal_stored_rows_are_one_pair_and_tell_no_error(monkeypatch):
    monkeypatch.setattr(correct, "_restored", lambda patterns, rows, *rest: (rows, "what it learned"))
    first = np.random.default_rng(0).normal(size=(40, 3))
    first[1] = first[0]
    origins = torch.full((20,), -1)
    origins[:2] = torch.arange(2)
    tables = (Table.of(dict(zip("abc", rows.T, strict=True))) for rows in (first, 2 + 1.1 * first[:20]))
    told = dict(correct.corrected(*tables, origins, verbose=False).lines)
    assert told["how far off"].startswith("unknown") and told["corrected by"] == "b-hop, what it learned"
