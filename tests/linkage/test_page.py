import copy
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.linkage.data import tables

from ahop import linkage
from ahop.linkage.holdout import Labels
from ahop.memories.checking import Certificate
from ahop.tables.table import Table

pytest.importorskip("matplotlib")


class Seen(HTMLParser):
    """What a browser would show, what it would fetch, and whether every element ends."""

    def __init__(self, text):
        super().__init__()
        self.words, self.fetched, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.fetched += [named[key] for key in ("src", "href") if key in named and tag not in ("use", "a")]
        if tag not in ("meta", "path", "use", "rect", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                raise AssertionError(f"{tag} ends what others began")

    def handle_data(self, data):
        self.words.append(data)


def test_a_page_shows_the_verdict_what_was_learned_what_is_doubtful_and_what_to_do(found):
    seen = Seen(linkage.page(found, 0.9, linkage.asked(found, 5)))
    told = " ".join(seen.words)
    for part in (
        "90 % is wanted",
        "What happened to the rows",
        "How sure",
        "look at first",
        "Rows to check",
        "do next",
    ):
        assert part in told, part
    least = int(found.probabilities.argmin())
    assert str(found.incoming.ids[least]) in told and "Which columns decided" in told
    assert found.incoming.columns[0] in told


@pytest.mark.slow
def test_a_page_beside_rows_to_check_says_what_to_do_with_them(found):
    told = " ".join(Seen(linkage.page(found, None, linkage.asked(found, 5), "m-check.csv")).words)
    assert told.count("fill in the column 'answer' of m-check.csv, and give it to --answers") == 2
    assert "--ask" not in told and "--ask 20" in linkage.page(found)


def test_a_page_needs_no_network_and_follows_dark_mode(found):
    text = linkage.page(found)
    seen = Seen(text)
    assert not seen.fetched and not seen.open and "prefers-color-scheme: dark" in text
    assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons\.org|matplotlib\.org)", text)


def test_names_of_rows_cannot_become_part_of_the_page(found):
    ids = found.incoming.ids.copy()
    ids[:] = [f"<script>{row}</script>" for row in range(len(ids))]
    text = linkage.page(replace(found, incoming=replace(found.incoming, ids=ids)))
    assert "<script>" not in text and "&lt;script&gt;" in text


@pytest.mark.slow
def test_what_nobody_has_checked_is_said_to_be_unchecked():
    stored, incoming, _ = tables()
    told = " ".join(Seen(linkage.page(linkage.link(stored, incoming, verbose=False))).words)
    assert "Too few have been checked" in told or "Nothing was found" in told


def test_strangers_and_rows_that_were_matched_twice_are_named(found):
    indices, strangers = found.indices.clone(), torch.zeros(len(found.indices), dtype=torch.bool)
    indices[:3], strangers[5] = int(indices[0]), True
    told = " ".join(Seen(linkage.page(replace(found, indices=indices, strangers=strangers, reject=0.05))).words)
    assert f"1 row of no stored one. {found.incoming.ids[5]}" in told
    assert "matched more than once" in told and str(found.stored.ids[int(indices[0])]) in told


@pytest.mark.slow
def test_probabilities_are_held_against_labels_where_there_are_enough(found):
    checked = found.indices.index_fill(0, torch.arange(20, 30), -1)
    told = " ".join(Seen(linkage.page(linkage.answered(found, checked))).words)
    assert "take the matches that are sure enough, and look at the others by hand" in told
    assert "Do the probabilities hold?" in told and "expected calibration error" in told
    few = linkage.answered(found, checked.index_fill(0, torch.arange(19, 30), -1))
    assert "Do the probabilities hold?" not in linkage.page(few)
    # They are those of before, which the answers have not made any surer.
    after = linkage.answered(found, checked).labels
    assert after.probabilities.equal(found.probabilities[:20]) and bool(after.right.all())


def test_what_decided_is_said_of_the_match_and_the_runner_up_that_stand_beside_it(found):
    indices, second, sure = found.second.clone(), found.indices.clone(), found.probabilities.clone()
    sure[7] = 0.01
    told = " ".join(Seen(linkage.page(replace(found, indices=indices, second=second, probabilities=sure))).words)
    assert f"nats for {found.stored.ids[int(indices[7])]} against {found.stored.ids[int(second[7])]}" in told


def test_what_is_drawn_over_each_other_is_the_match_and_not_what_a_row_would_have_by_itself(found, monkeypatch):
    drawn = []
    # The function is called as its module.
    module = sys.modules[linkage.page.__module__]
    monkeypatch.setattr(module, "order_of", lambda patterns: (1,))
    monkeypatch.setattr(module, "matches_of", lambda *given, **options: drawn.append((given, options)))
    indices, second, sure = found.second.clone(), found.indices.clone(), found.probabilities.clone()
    sure[7] = 0.01
    linkage.page(replace(found, indices=indices, second=second, probabilities=sure))
    ((_, queries, pairs, told, names), options) = drawn[0]
    assert pairs[0].tolist() == [int(indices[7]), int(second[7])] and len(pairs) == len(told) == 6
    assert told[0] == f"o7\n{found.stored.ids[int(indices[7])]}, 1 %" and options["first"] == "match"
    assert queries[0].tolist() == pytest.approx(found.incoming.values[7]) and names == found.incoming.columns


def test_known_pairs_alone_show_whether_probabilities_hold(taught, monkeypatch):
    """First choices are judged while learning; a page asks pairs that are hidden once more, a half at a time."""
    assert taught.labels is None and "Do the probabilities hold?" not in linkage.page(taught)
    hidden = Labels(torch.full((30,), 0.9), torch.arange(30) < 27)
    asked = []
    monkeypatch.setattr("ahop.linkage.linking.held_out", lambda *given, **how: asked.append((given, how)) or hidden)
    shown = linkage.with_reliability(taught)
    ((_, queries, origins), how) = asked[0]
    assert origins.equal(taught.origins) and len(queries) == 30 and not how["one_to_one"]
    told = " ".join(Seen(linkage.page(shown)).words)
    assert "Do the probabilities hold?" in told and "held out, half of them at a time" in told
    # Too few pairs show nothing, and labels that are there are kept.
    few = replace(taught, judged=replace(taught.judged, labels=19, right=19))
    assert linkage.with_reliability(few) is few and linkage.with_reliability(shown) is shown and len(asked) == 1


def test_what_happened_is_said_in_words_with_the_names_of_columns(found, monkeypatch):
    def describe(self, columns=None):
        return f"They move {'column 1' if columns is None else columns[1]} most.\n  So it is."

    monkeypatch.setattr(type(found.memory.similarity), "describe", describe)
    assert f"<p>They move {found.incoming.columns[1]} most.</p><p>So it is.</p>" in linkage.page(found)


@pytest.mark.slow
def test_stored_rows_that_more_rows_asked_for_than_there_is_room_are_named(found):
    assert "strained" not in linkage.page(found)
    alone = found.indices.clone()
    alone[4] = alone[3]
    strained = replace(found, one_to_one=True, alone=alone, strained={int(alone[3]): 2})
    told = " ".join(Seen(linkage.page(strained)).words)
    assert "Where one to one was strained" in told
    assert f"{found.stored.ids[int(alone[3])]} o3, o4 o3" in told


def test_where_nothing_was_found_a_page_shows_no_matches(found):
    memory = copy.copy(found.memory)
    memory.report = replace(memory.report, found=False)
    lost = replace(found, model=replace(found.model, memory=memory), indices=found.indices.clamp_max(12))
    told = " ".join(Seen(linkage.page(lost)).words)
    assert "look at first" not in told and "more than once" not in told and "Nothing was found" in told
    checked = linkage.page(replace(lost, certificate=Certificate(1, 20)))
    assert "can be relied on" not in checked and "Are both files of the same things?</p>" in checked


@pytest.mark.slow
def test_a_browser_draws_the_page_without_a_complaint(found, tmp_path):
    import shutil

    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    sync_api = pytest.importorskip("playwright.sync_api")
    if browser is None:
        pytest.skip("the page was NOT drawn: there is no browser here")
    page = Path(tmp_path, "report.html")
    page.write_text(linkage.page(found))
    with sync_api.sync_playwright() as play:
        window = play.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page()
        complaints = []
        window.on("console", lambda message: complaints.append(message.text))
        window.on("pageerror", lambda error: complaints.append(str(error)))
        window.goto(page.as_uri())
        wide = window.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        pictures = window.locator("svg").count()
    assert not complaints and wide and pictures >= 3


def test_ids_and_columns_are_shown_as_they_stand_and_are_no_formulas():
    random = np.random.default_rng(0)
    curves = random.normal(size=(60, 12)).cumsum(1)
    names = [f"$c_{place}" for place in range(12)]

    def table(rows, ids):
        return Table.of({"sku": ids, **dict(zip(names, rows.T, strict=True))})

    stored, seen = table(curves, [f"A$_3^${row}" for row in range(60)]), curves + 0.5 * random.normal(size=curves.shape)
    seen[3, 4] = np.nan
    linked = linkage.link(stored, table(seen, [f"$\\frac{row}$" for row in range(60)]), verbose=False)
    page = linkage.page(linked)
    words = " ".join(Seen(page).words)
    assert "Which columns decided" in words and "What happened to the rows" in words and "$c_" in page


def test_rows_that_miss_values_are_drawn_over_their_matches_as_well(monkeypatch):
    curves = np.sin(np.linspace(0, 6, 30) + np.linspace(0, 3, 40)[:, None]) * np.linspace(1, 2, 40)[:, None]
    seen = curves + 0.01 * np.random.default_rng(0).normal(size=curves.shape)
    seen[::3, 4] = np.nan
    linked = linkage.link(*(Table.of({f"{n}": column for n, column in enumerate(rows.T)}) for rows in (curves, seen)))
    assert linked.found and "Drawn over each other" in " ".join(Seen(linkage.page(linked)).words)
