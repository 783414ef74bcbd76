import json
from dataclasses import replace

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
    assert after.table() == before.table() and after.earlier == before.earlier and after.earlier.labels >= 20


def test_labels_of_an_earlier_batch_verify_nothing_of_this_one(found, taught):
    assert taught.verified and not found.verified and found.evidence is None
    assert not any(found.table()["verified"])
    passed, text = linkage.verdict(found, 0.5)
    assert not passed and text.startswith("not checked") and "of these rows" in text
    told = dict(linkage.lines(found))
    assert "earlier batch" in told["rests on"] and told["how right"].startswith("nobody knows")


def test_a_batch_that_is_unlike_the_one_learned_from_says_so(taught):
    incoming = tables()[1]
    assert not linkage.link(taught.model, incoming).notes
    other = replace(incoming, values=incoming.values[:, ::-1] + 3.0)
    (note,) = linkage.link(taught.model, other).notes
    assert "less familiar" in note and "learn anew" in note


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
