import json

import pytest
from tests.linkage.data import tables

from ahop import BayesianHopfield, linkage


def test_a_saved_model_answers_as_before_and_remembers_what_that_rests_on(found, tmp_path):
    found.model.save(tmp_path / "model")
    loaded = linkage.Model.load(tmp_path / "model")
    assert str(loaded.memory.report) == str(found.memory.report)
    assert loaded.stored.ids.tolist() == found.stored.ids.tolist() and loaded.columns == found.model.columns
    incoming = tables()[1]
    before, after = linkage.link(found.model, incoming), linkage.link(loaded, incoming)
    assert after.table() == before.table() and after.verified


def test_ids_of_another_memory_are_refused(found, tmp_path):
    found.model.save(tmp_path)
    BayesianHopfield(found.memory.patterns.flip(0)).save(tmp_path)
    with pytest.raises(ValueError, match=r"linkage\.json does not belong to the memory beside it"):
        linkage.Model.load(tmp_path)


def test_what_is_no_model_is_refused_in_one_line(found, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no model of ahop match"):
        linkage.Model.load(tmp_path)
    found.model.save(tmp_path)
    page = tmp_path / "linkage.json"
    page.write_text(json.dumps({"ids": []})[:-2])
    with pytest.raises(ValueError, match=r"linkage\.json is damaged"):
        linkage.Model.load(tmp_path)
