"""Two small tables, and the pairs that a person might know of them."""

import numpy as np

from ahop.tables import Table

STORED, INCOMING, WIDTH = 40, 30, 5


def drawn(noise=0.02, seed=0):
    """A stored table, an incoming one of its rows from the last on, and the row that each comes from."""
    draw = np.random.default_rng(seed)
    values = draw.normal(size=(STORED, WIDTH))
    origins = np.arange(STORED)[::-1][:INCOMING].copy()
    names = [f"x{place}" for place in range(WIDTH)]
    stored = {"sku": [f"{row:03}" for row in range(STORED)], **dict(zip(names, values.T, strict=True))}
    asked = values[origins] + 1 + noise * draw.normal(size=(INCOMING, WIDTH))
    incoming = {"order": [f"o{row}" for row in range(INCOMING)], **dict(zip(names[::-1], asked.T[::-1], strict=True))}
    return stored, incoming, origins


def tables(**options):
    stored, incoming, origins = drawn(**options)
    return Table.of(stored, name="stored"), Table.of(incoming, name="incoming"), origins
