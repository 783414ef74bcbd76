import json

import pytest
from typer.testing import CliRunner

from ahop_paper import claims
from ahop_paper.commands import app


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.check.__name__)
def test_what_is_said_to_hold_holds(claim):
    printed, corrected = claim.check()
    assert corrected == pytest.approx(1.0)
    assert (printed == pytest.approx(1.0)) == (claim.holds == "It holds.")


@pytest.mark.slow
def test_the_table(tmp_path):
    out = tmp_path / "claims.json"
    result = CliRunner().invoke(app, ["claims", "--out", str(out)], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())["rows"]
    assert len(rows) == len(claims.CLAIMS)
    assert "1.225" in result.output
