import pytest

from ahop.linkage import forecast, in_words
from ahop.linkage.duration import _multiplication


def test_a_forecast_grows_with_rows_and_columns_and_is_less_where_nothing_is_learned(monkeypatch):
    monkeypatch.setattr("ahop.linkage.duration._multiplication", lambda: 1e-11)
    times = [forecast(10**5, 10**4, 64), forecast(10**6, 10**4, 64), forecast(10**6, 10**5, 64)]
    assert times == sorted(times) and forecast(10**6, 10**5, 128) == pytest.approx(2 * times[-1])
    assert forecast(10**6, 10**5, 64, learning=False) < times[-1]


def test_a_forecast_counts_sharing_out_and_the_halves_of_pairs_that_judge(monkeypatch):
    monkeypatch.setattr("ahop.linkage.duration._multiplication", lambda: 1e-11)
    many = (10**5, 10**4, 64)
    once, learned = forecast(*many), forecast(*many) - forecast(*many, learning=False)
    assert forecast(*many, judging=True) == pytest.approx(once + 2 * learned)
    together = forecast(*many, one_to_one=True)
    assert together > once and forecast(*many, one_to_one=True, judging=True) == pytest.approx(3 * together)


def test_the_speed_of_this_machine_is_measured():
    assert 1e-14 < _multiplication() < 1e-7
    assert forecast(10, 10, 2) < 60 and in_words(forecast(10, 10, 2)) == ""
