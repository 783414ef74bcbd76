import json
from dataclasses import replace

import pytest
import torch
from tests.linkage.data import tables

from ahop import BayesianHopfield, linkage


def test_a_saved_model_answers_as_before_and_remembers_what_that_rests_on(found, tmp_path):
    found.model.save(tmp_path / "model")
    loaded = linkage.Model.load(tmp_path / "model")
    assert str(loaded.memory.report) == str(found.memory.report)
    assert loaded.stored.ids.tolist() == found.stored.ids.tolist() and loaded.columns == found.model.columns
    incoming = tables()[1]
    before, after = linkage.link(found.model, incoming), linkage.link(loaded, incoming)
    assert (
        after.table() == before.table() and after.earlier == before.earlier and after.earlier.certificate.labels == 30
    )


def test_labels_of_an_earlier_batch_verify_nothing_of_this_one(found, taught):
    assert taught.verified and not found.verified and found.evidence is None
    assert not any(found.table()["verified"])
    passed, text = linkage.verdict(found, 0.5)
    assert not passed and text.startswith("not checked") and "of these rows" in text
    told = dict(linkage.lines(found))
    assert "earlier batch" in told["rests on"] and told["how right"].startswith("unknown")


@pytest.mark.parametrize("one_to_one", [False, True])
def test_the_next_batch_is_told_of_which_kind_the_labels_of_an_earlier_one_were(found, tmp_path, one_to_one):
    incoming = tables()[1]
    told = dict(linkage.lines(found))
    assert told["rests on"].startswith("30 known pairs of an earlier batch, held out while learning;")
    batch = linkage.link(found.model, incoming, one_to_one=one_to_one)
    right = batch.indices.index_fill(0, torch.arange(20, 30), -1)
    checked = linkage.answered(batch, right.index_copy(0, torch.tensor([0]), right[1:2]))
    checked.model.save(tmp_path / "model")
    after = linkage.link(linkage.Model.load(tmp_path / "model"), incoming)
    told = dict(linkage.lines(after))
    assert after.earlier.certificate == checked.certificate and after.earlier.checked
    assert told["rests on"].startswith("20 checked answers of an earlier batch;")
    what = "matches were right" if one_to_one else "first choices were right"
    assert f"of the batch learned from, 95 % of 20 {what}" in told["how right"]
    assert told["how right"].endswith(", one to one") == one_to_one


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
