from html import unescape

import torch

from ahop.playground import views, widgets
from ahop.playground.damage import Sliders
from ahop.playground.pictures import Pictures
from ahop.playground.recall import Answer, Task
from ahop.playground.yours import B_HOP, METHODS, Row


def card(right, refused, tied=False):
    pictures = Pictures(torch.eye(4), (2, 2), ("<script>", "${x}", "{{y}}", "plain"))
    answer = Answer("b-hop", torch.zeros(4), ((0, 0.9), (1, 0.1)), right, tied, refused)
    return views.cards(Task(pictures, 0, Sliders()), [answer], ["b-hop", "Oracle"])


def test_a_card_says_whether_the_memory_is_right_and_whether_it_refuses():
    assert "first choice is right" in card(True, False)
    assert "first choice is wrong" in card(False, None)
    assert "as likely as another" in card(True, False, tied=True)
    assert "says: none of these" in card(True, True) and "verdict bad" in card(True, True)
    assert "says: none of these" in card(None, True) and "verdict good" in card(None, True)
    assert "takes it for one of these (it cannot say no)" in card(None, None)


def test_a_memory_that_has_not_answered_yet_is_learning():
    assert card(True, False).count("learning from examples") == 1


def test_names_of_files_are_shown_and_never_run():
    text = card(True, False)
    assert "<script>" not in text and "${x}" not in text and "{{y}}" not in text
    assert all(name in unescape(text) for name in ("<script>", "${x}"))


def test_names_of_files_are_no_code_in_the_template_of_a_picker():
    names = ("${alert(1)}", "\\u", "`", "{{y}}", '"><script>')
    pictures = Pictures(torch.eye(5), (1, 5), names)
    shown = [one["name"] for one in widgets.thumbnails(pictures, 0)]
    assert not set("".join(shown)) & set("<>\"'{}$`\\") and [unescape(name) for name in shown] == list(names)
    # What is HTML already is put in as it is.
    assert widgets._PICK.count("{{{this.name}}}") == widgets._PICK.count("this.name") == 2


def test_the_best_figures_of_a_table_are_bold_and_a_problem_is_said():
    rows = [
        Row(METHODS[2], 0.5, 0.1, 0.6),
        Row(B_HOP, 0.9, 0.2, 0.8),
        Row(METHODS[3], problem="no <b>"),
    ]
    text = views.table(rows, total=4)
    assert views.table([Row(METHODS[1], 0.95)], 1).count("&ndash;") == 2
    assert "<b>0.900</b>" in text and "<b>0.100</b>" in text and "<b>0.500</b>" not in text
    assert "no &lt;b&gt;" in text and "3 of 4 methods done" in text
