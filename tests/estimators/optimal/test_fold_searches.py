"""The searches of the folds: made once where there is room, made again where not, and the same either way."""

import numpy as np
import pytest

from softsurv.data.binarize import Binarizer
from softsurv.data.readers import survival_data
from softsurv.estimators.optimal.fold_searches import FoldSearches
from softsurv.estimators.optimal.parameters import OptimalParameters
from softsurv.exact.memory import Room
from softsurv.stopping import StopSignal


def searches(rows, room):
    data = survival_data(*rows)
    binarizer = Binarizer(4).fit(data.X)
    return FoldSearches(data, binarizer, OptimalParameters(), "adaptive", data.folds(5, 0), Room(room)), data


def test_a_fold_is_searched_over_its_training_rows(make_rows):
    making, data = searches(make_rows(90), 1e9)
    for number, (train, test) in enumerate(making.folds):
        search, held_out = making.fold(number)
        np.testing.assert_array_equal(np.sort(search.rows.time), np.sort(data.time.numpy()[train]))
        np.testing.assert_array_equal(held_out.rows.time, data.time.numpy()[test])
        assert making.fold(number)[0] is search


def test_what_does_not_fit_is_made_again_and_is_the_same(make_rows):
    kept, small = searches(make_rows(90), 1e9)[0], searches(make_rows(90), 1e6)[0]
    small.most = 0  # no room
    small.kept = {-1: None}  # and the share of a fold is known already
    assert small.fold(3)[0] is small.fold(3)[0]  # the last one made is at hand
    strengths, timer = (5.0, 20.0), StopSignal()
    for number in range(5):
        paths = [[], []]
        for making, found in zip((kept, small), paths, strict=True):
            making.add_path(found, number, 2, 4, timer, strengths)
        np.testing.assert_allclose(paths[0][0].loss, paths[1][0].loss)
        assert [tree.n_leaves for tree in paths[0][0].trees] == paths[1][0].n_leaves.tolist()
    assert set(small.kept) == {-1}
    assert len(kept.kept) == 5


def test_time_that_is_over_adds_no_path(make_rows):
    making, paths = searches(make_rows(90), 1e9)[0], []
    timer = StopSignal(0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(making.fold(0)[0]), "path", lambda *_: ([], timer.status))
        assert making.add_path(paths, 0, 2, 4, timer, (5.0,)) == "time_limit"
    assert paths == []
