"""Progress bars: what they count, that they close after an error, and that nothing is shown unasked."""

import threading

import pytest
import torch

from softsurv.estimators.shared.progress import choice_bar, search_bar, training_bar


@pytest.mark.parametrize("bar", [lambda: search_bar(False), lambda: choice_bar(False), lambda: training_bar(False, 9)])
def test_nothing_is_shown_unasked(bar, capsys):
    with bar() as tell:
        assert tell is None
    assert capsys.readouterr().err == ""


def test_a_search_shows_its_share_with_bound_and_incumbent(capsys):
    with search_bar(True) as bar:
        bar(0.256, 1.25, 2.5)
    shown = capsys.readouterr().err
    assert "searching:  26%" in shown
    assert "bound=1.25, incumbent=2.5" in shown


def test_a_bar_closes_where_the_search_fails(capsys):
    def failing(bar):
        bar(0.5, 0.0, 1.0)
        raise RuntimeError

    with pytest.raises(RuntimeError), search_bar(True) as bar:
        failing(bar)
    shown = capsys.readouterr().err
    assert "50%" in shown
    assert shown.endswith("\n")  # the line is left to whoever writes next


def test_a_choice_counts_the_candidates_of_all_threads(capsys):
    with choice_bar(True) as tell:
        threads = [threading.Thread(target=tell, args=(f"depth {k}", 5, 40)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tell("one leaf", 0, 40)
    shown = capsys.readouterr().err
    assert "40/40" in shown
    assert "choosing: one leaf" in shown


def test_training_shows_the_best_objective_and_the_latest_round(capsys):
    with training_bar(True, 20) as tell:
        tell(4, torch.tensor([3.0, 2.5]))
        tell(2, torch.tensor([2.75]))  # a part that began later: neither round nor objective goes back
        tell(9, torch.tensor([2.6]))
    last = capsys.readouterr().err.rsplit("\r", 1)[-1]
    assert "9/20" in last
    assert "objective=2.50000" in last
