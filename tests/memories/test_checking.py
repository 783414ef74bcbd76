import math
from dataclasses import replace

import pytest
import torch

from ahop import STRANGER, BayesianHopfield
from ahop._recall import Recall
from ahop.learning.conformal import realised
from ahop.learning.report import FitReport
from ahop.memories.checking import Certificate, certified, questions
from ahop.variants import Noisy

PATTERNS = torch.rand(50, 12, generator=torch.Generator().manual_seed(0)) * 2 - 1


def answered(count, generator):
    """A recall that is surer where it is right more often, and whether each first choice is right."""
    sure = torch.rand(count, generator=generator)
    right = torch.rand(count, generator=generator) < 0.5 + sure / 2
    first = torch.randint(20, (count,), generator=generator)
    return Recall(first[:, None], sure[:, None]), right


@pytest.mark.slow
def test_intervals_hold_their_level_over_a_thousand_certificates():
    generator = torch.Generator().manual_seed(0)
    held = {10: 0, 20: 0}
    for seed in range(1000):
        found, right = answered(200, generator)
        origins = torch.where(right, found.indices[:, 0], 20)
        for count in held:
            rows = [one.row for one in questions(found, count, seed)]
            low, high = certified(found.indices[rows, 0], origins[rows], 21, None).interval
            held[count] += low <= float(right.double().mean()) <= high
    # Two standard errors of a thousand draws below the level that is promised.
    assert min(held.values()) >= 900 - 2 * 9.5


@pytest.mark.slow
def test_every_query_is_asked_about_as_often_as_any_other_and_doubtful_ones_are_always_among_them():
    found, _ = answered(60, torch.Generator().manual_seed(1))
    times = torch.zeros(60)
    doubtful = found.probabilities[:, 0].argsort()[:30]
    for seed in range(2000):
        rows = torch.tensor([one.row for one in questions(found, 6, seed)])
        assert len(rows.unique()) == 6 and 2 <= int(torch.isin(rows, doubtful).sum()) <= 4
        times[rows] += 1
    # 200 times each, with a standard deviation of 13.
    assert int(times.min()) > 140 and int(times.max()) < 260


def test_what_is_checked_is_what_the_memory_answers_and_the_report_rests_on_it():
    memory = BayesianHopfield(PATTERNS)
    queries = PATTERNS[torch.arange(100) % 50]
    asked = memory.ask(queries, 25, k=2)
    assert [len(one.candidates) for one in asked] == [2] * 25 and not memory.recall(queries).verified
    rows = [one.row for one in asked]
    answers = [None, STRANGER, (rows[2] + 1) % 50, *(row % 50 for row in rows[3:])]
    found = memory.verify(queries[rows], answers, wanted=0.7)
    assert (found.right, found.labels, found.strangers) == (22, 24, 1)
    assert found.verdict == "PASS" and str(found).startswith("PASS: 92 % of 24 first choices were right")
    assert memory.report.labels == 24 and memory.recall(queries).verified


def test_a_verdict_says_what_would_decide():
    assert Certificate(10, 20, wanted=0.9).verdict == "FAIL"
    open_still = Certificate(18, 20, wanted=0.8)
    assert open_still.verdict == "WARN"
    decided = 20 + open_still.more
    assert Certificate(round(0.9 * decided), decided, wanted=0.8).verdict == "PASS"
    assert "; 99.9 % is wanted" in Certificate(20, 20, wanted=0.999).outcome
    assert Certificate(18, 20, wanted=0.9).more is None
    assert Certificate(18, 20).verdict == "PASS" and "wanted" not in str(Certificate(18, 20))


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([0], "answers must be 2, one for each query; got 1"),
        ([0, 50], "answers must be origins from 0 to 49, ahop.STRANGER for none of them, or None .* got 50"),
        ([0, 0.5], "got 0.5"),
        # Where origins are learned from, it means that nobody knows.
        ([0, -1], "got -1"),
        # Whether it was right is no origin.
        ([True, False], "got True"),
        ([0, "sku-7"], "got 'sku-7'"),
        ([0, float("nan")], "got nan"),
        ([None, None], "answers must hold at least one that is known"),
    ],
)
def test_bad_answers_are_refused_and_change_nothing(answers, message):
    memory = BayesianHopfield(PATTERNS)
    with pytest.raises(ValueError, match=message):
        memory.verify(PATTERNS[:2], answers)
    assert memory.report is None
    with pytest.raises(ValueError, match="wanted must"):
        memory.verify(PATTERNS[:2], [0, 1], wanted=2)
    with pytest.raises(ValueError, match="count must be at most 2, as many as there are queries; got 3"):
        memory.ask(PATTERNS[:2], 3)


def hard(seed, count):
    return Noisy(0.8).sample(PATTERNS, count, torch.Generator().manual_seed(seed))


@pytest.mark.slow
def test_sets_hold_the_origin_at_the_rate_that_labels_promise():
    held = []
    for seed in range(2):
        queries, origins = hard(seed, 400)
        memory = BayesianHopfield(PATTERNS).fit(queries[:200], origins[:200], hidden_causes=0, seed=seed)
        sets = memory.recall(queries[200:], coverage=0.9)
        sizes = (sets.indices >= 0).sum(1)
        assert sets.indices.shape[1] == int(sizes.max()) > int(sizes.min()) >= 1
        assert bool((sets.probabilities[sets.indices < 0] == 0).all()) and sets.verified
        held.append(float((sets.indices == origins[200:, None]).any(1).float().mean()))
    assert 0.84 < sum(held) / 2 < 0.97


def test_of_ten_queries_exactly_eight_are_held_by_what_the_nine_others_prove_of_them():
    # Split conformal prediction is exact where no score depends on who else has judged, and a temperature would.
    queries, origins = hard(6, 10)
    held = 0
    for one in range(10):
        others = torch.arange(10) != one
        memory = BayesianHopfield(PATTERNS)
        memory.verify(queries[others], origins[others])
        held += int(origins[one] in memory.recall(queries[one], coverage=0.8).indices)
    assert held == 8


def test_sets_say_what_so_many_labels_can_promise():
    for count, expected in ((10, (0.741, 0.995)), (100, (0.848, 0.945))):
        memory = BayesianHopfield(PATTERNS)
        memory.verify(PATTERNS[torch.arange(count) % 50], torch.arange(count) % 50)
        assert memory.recall(PATTERNS[:2], coverage=0.9).coverage == pytest.approx(expected, abs=1e-3)
    assert memory.recall(PATTERNS[:2]).coverage is None


@pytest.mark.slow
@pytest.mark.parametrize("answers", [10, 20])
def test_sets_hold_the_origin_after_the_same_answers_have_said_how_sure_to_be(answers):
    share, inside = [], 0
    for seed in range(150):
        queries, origins = hard(seed, answers + 200)
        # Some are hit so hard that they tell nothing, and the memory was far too sure.
        lost = torch.rand(len(queries), generator=torch.Generator().manual_seed(seed)) < 0.05
        queries = torch.where(lost[:, None], queries.flip(0), queries)
        memory = BayesianHopfield(PATTERNS)
        memory.similarity.log_beta += 1.0
        memory.verify(queries[:answers], origins[:answers])
        sets = memory.recall(queries[answers:], coverage=0.8).indices
        share.append(float((sets == origins[answers:, None]).any(1).double().mean()))
        low, high = realised(answers, 0.8)
        inside += low <= share[-1] <= high
    # No less than promised, less two standard errors; and no more than so many answers cannot help.
    assert 0.8 - 0.018 < sum(share) / len(share) < 0.8 + 1 / answers + 0.018
    assert inside >= 0.9 * 150 - 2 * 3.7


@pytest.mark.slow
def test_checked_answers_make_a_memory_as_sure_as_it_is_right_and_leave_its_answers():
    queries, origins = hard(0, 300)
    memory = BayesianHopfield(PATTERNS).fit(queries[:200], origins[:200], hidden_causes=0)
    memory.similarity.log_beta += 3.0
    before = memory.recall(queries)
    assert float(before.probabilities.mean()) > 0.9
    memory.verify(queries[200:], origins[200:].tolist())
    after = memory.recall(queries)
    right = float((after.indices[:200, 0] == origins[:200]).float().mean())
    assert torch.equal(before.indices, after.indices) and abs(float(after.probabilities.mean()) - right) < 0.1
    assert memory.recall(queries, coverage=0.9).indices.shape[1] > 1


@pytest.mark.slow
def test_twenty_right_answers_do_not_make_a_memory_certain():
    queries, origins = hard(0, 300)
    memory = BayesianHopfield(PATTERNS).fit(queries[:200], origins[:200], hidden_causes=0)
    found = memory.recall(queries)
    right = (found.indices[:, 0] == origins).nonzero().squeeze(1)[:20]
    memory.verify(queries[right], origins[right].tolist())
    # 20 of 20: at least 86 % are right.
    assert float(memory.recall(queries).probabilities.mean()) < max(0.9, float(found.probabilities.mean()) + 0.01)


def test_strangers_among_the_answers_lower_confidence_and_what_sets_can_promise():
    memory = BayesianHopfield(PATTERNS)
    memory.verify(PATTERNS, [*range(45), *[STRANGER] * 5])
    assert 0.75 < float(memory.recall(PATTERNS[:1]).probabilities) < 0.91
    memory.recall(PATTERNS, coverage=0.85)
    with pytest.raises(ValueError, match="5 of 50 labelled queries come from no stored pattern"):
        memory.recall(PATTERNS, coverage=0.95)


@pytest.mark.slow
def test_a_memory_that_found_nothing_is_believed_once_answers_are_right():
    memory = BayesianHopfield(PATTERNS).fit(PATTERNS + 1e-3, hidden_causes=0)
    memory.similarity.doubt.fill_(1.0)
    memory.report = replace(memory.report, found=False)
    assert float(memory.recall(PATTERNS).probabilities.max()) == pytest.approx(1 / 50)
    memory.verify(PATTERNS[:20], range(20))
    assert memory.report.found and float(memory.recall(PATTERNS).probabilities.min()) > 0.5


def test_coverage_needs_labels_and_says_so():
    memory = BayesianHopfield(PATTERNS)
    with pytest.raises(ValueError, match="coverage must be None where no label was held out"):
        memory.recall(PATTERNS, coverage=0.9)
    memory.verify(PATTERNS, range(50))
    with pytest.raises(ValueError, match="k must be left out where coverage says how many"):
        memory.recall(PATTERNS, 3, coverage=0.9)
    with pytest.raises(ValueError, match=r"coverage must be at most 0\.980, which is what 50 labels can promise"):
        memory.recall(PATTERNS, coverage=0.99)
    memory.prior = torch.ones(50)
    with pytest.raises(ValueError, match="coverage must be None where the memory has a prior"):
        memory.recall(PATTERNS, coverage=0.9)


@pytest.mark.slow
def test_genuine_queries_are_kept_as_before_once_answers_have_changed_the_temperature():
    queries, origins = hard(3, 400)
    memory = BayesianHopfield(PATTERNS).fit(queries[:150], origins[:150], hidden_causes=0)
    memory.similarity.log_beta += 1.0
    for kept in (memory.similarity.genuine, memory.similarity.strange):
        kept.copy_((kept + math.log(50)) * math.e - math.log(50))
    memory.verify(queries[150:250], origins[150:250].tolist())
    assert float(memory.similarity.log_beta) < 0.8
    answered = memory.recall(queries[250:], reject=0.1).indices[:, 0] >= 0
    assert 0.8 < float(answered.float().mean()) <= 1


def test_labels_verify_nothing_once_many_patterns_have_come_or_gone():
    patterns = torch.rand(100, 8, generator=torch.Generator().manual_seed(0))
    memory = BayesianHopfield(patterns)
    memory.verify(patterns[:40], range(40))
    memory.remove(range(90, 95))
    assert memory.recall(patterns[:1]).verified
    memory.add(torch.rand(6, 8))
    assert not memory.recall(patterns[:1]).verified and not memory.match(patterns[:1]).verified
    with pytest.raises(ValueError, match="coverage must be None where many patterns have come or gone"):
        memory.recall(patterns[:1], coverage=0.9)
    # Further answers judge anew, beside what is stored then.
    memory.verify(patterns[:40], range(40))
    memory.add(torch.rand(3, 8))
    assert memory.recall(patterns[:1], coverage=0.9).verified


def test_labels_verify_nothing_where_patterns_came_and_went_while_they_judged():
    patterns = torch.rand(100, 8, generator=torch.Generator().manual_seed(0))
    memory = BayesianHopfield(patterns)
    with memory.learning() as now:
        now._take(now.similarity, FitReport("em", 0.0, 1, True, accuracy=1.0, labels=60))
        memory.remove(range(70, 100))
        memory.add(torch.rand(30, 8))
    assert memory.report.labels == 60 and not memory.recall(patterns[:1]).verified


def test_answers_alone_are_a_report():
    patterns = torch.rand(100, 8, generator=torch.Generator().manual_seed(0))
    memory = BayesianHopfield(patterns)
    memory.verify(patterns[:40], range(40))
    told = str(memory.report)
    assert "nothing was learned" in told and "40 answers that were checked" in told and "nan" not in told
