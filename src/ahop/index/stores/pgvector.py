"""PostgreSQL with the extension pgvector."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ahop._checks import choice, integer
from ahop._extras import require
from ahop.index.stores.base import StoreError

# How wide pgvector's vectors may be.
_WIDEST = 16_000
_OPERATORS = {"inner": "<#>", "cosine": "<=>", "l2": "<->"}


class PgVectorStore:
    """A table of vectors in PostgreSQL.

    A table that is there is used as it is, with an index of its own where it has one. Otherwise one is made, without an
    index: what is found is then exact.

    Args:
        address: As PostgreSQL has it: ``"postgresql://user@host/database"``.
        table: Its name, with a schema's before a dot if need be.
        width: Numbers a vector.
        id_column, vector_column: The names of the two columns.
        metric: What vectors are found by: "inner" for codes; "cosine" or "l2" where a table of embeddings goes by it.
        timeout: Seconds after which a statement is given up.
    """

    def __init__(
        self,
        address: str,
        table: str,
        width: int,
        *,
        id_column: str = "id",
        vector_column: str = "embedding",
        metric: str = "inner",
        timeout: float = 60.0,
    ) -> None:
        psycopg, sql = _psycopg(), _psycopg().sql
        choice(metric, "metric", tuple(_OPERATORS))
        if integer(width, "width", 1) > _WIDEST:
            raise ValueError(
                f"width must be at most {_WIDEST}, which is what pgvector stores, got {width}: codes of a larger "
                "tolerance are narrower, and Milvus stores up to 32,768"
            )
        self._names = {
            "table": sql.Identifier(*table.split(".")),
            "id": sql.Identifier(id_column),
            "vector": sql.Identifier(vector_column),
            "operator": sql.SQL(_OPERATORS[metric]),
            "width": sql.Literal(width),
        }
        self._turn = threading.Lock()
        with _said():
            self.connection = psycopg.connect(address, connect_timeout=int(max(1, timeout)))
            with self._transaction() as run:
                run("SELECT set_config('statement_timeout', %s, false)", [f"{int(1e3 * timeout)}ms"])
                run("CREATE EXTENSION IF NOT EXISTS vector")
                run("CREATE TABLE IF NOT EXISTS {table} ({id} bigint PRIMARY KEY, {vector} vector({width}) NOT NULL)")

    def upsert(self, ids: np.ndarray, vectors: np.ndarray) -> None:
        with self._transaction() as run:
            rows = [(int(number), _text(row)) for number, row in zip(ids, vectors, strict=True)]
            numbers, texts = [row[0] for row in rows], [row[1] for row in rows]
            run(
                "INSERT INTO {table} ({id}, {vector}) SELECT * FROM unnest(%s::bigint[], %s::text[]::vector[]) "
                "ON CONFLICT ({id}) DO UPDATE SET {vector} = EXCLUDED.{vector}",
                [numbers, texts],
            )

    def delete(self, ids: np.ndarray) -> None:
        with self._transaction() as run:
            run("DELETE FROM {table} WHERE {id} = ANY(%s::bigint[])", [[int(number) for number in ids]])

    def search(self, vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        ids, scores = np.full((len(vectors), count), -1, np.int64), np.full((len(vectors), count), -np.inf, np.float32)
        with self._transaction() as run:
            # An index of the table's own must look at as many as are wanted.
            run("SELECT set_config('hnsw.ef_search', %s, true)", [str(min(1000, max(40, count)))])
            found = run(
                "SELECT asked.place, best.* FROM unnest(%s::text[]) WITH ORDINALITY AS asked(code, place) "
                "CROSS JOIN LATERAL (SELECT {id}, {vector} {operator} asked.code::vector AS far FROM {table} "
                "ORDER BY {vector} {operator} asked.code::vector LIMIT %s) AS best ORDER BY asked.place, best.far",
                [[_text(row) for row in vectors], count],
            ).fetchall()
        filled = np.zeros(len(vectors), int)
        for place, number, far in found:
            row = place - 1
            ids[row, filled[row]], scores[row, filled[row]] = number, -far
            filled[row] += 1
        return ids, scores

    def close(self) -> None:
        """Let the connection go."""
        self.connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """All of the block's statements, or none of them."""
        sql = _psycopg().sql
        # A connection does one thing at a time.
        with self._turn, _said(), self.connection.transaction(), self.connection.cursor() as cursor:
            yield lambda text, values=(): cursor.execute(sql.SQL(text).format(**self._names), values)


def _psycopg() -> Any:
    require("psycopg", extra="pgvector")
    import psycopg
    import psycopg.sql

    return psycopg


@contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except _psycopg().Error as error:
        raise StoreError(f"PostgreSQL: {' '.join(str(error).split())}") from error


def _text(row: np.ndarray) -> str:
    return json.dumps(row.tolist())
