"""The time-dependent concordance of the osst package, whose figures papers `osst` and `sst` print."""

import numpy as np
import pytest

from softsurv.metrics import harrell_c, survival_from_log_cumulative_hazard, uno_c
from softsurv.nonparametric import censoring_survival

pytestmark = pytest.mark.peers


@pytest.fixture
def peer():
    """The peer's module, or skip."""
    return pytest.importorskip("osst.model.metrics")


@pytest.mark.parametrize("seed", range(3))
def test_equal_where_no_times_are_tied(fold, peer, seed):
    train, test = fold(seed + 50, n=150), fold(seed)
    keep = test.time < np.sort(train.time)[-2]
    time, event = test.time[keep], test.event[keep]
    grid = np.unique(time)
    log_h = test.log_h(grid)[keep]
    curves = survival_from_log_cumulative_hazard(log_h)
    expected = peer.harrell_c_index(event, time, curves, grid)[0]
    assert harrell_c(time, event, log_h, times=grid) == pytest.approx(expected, abs=1e-12)
    expected = peer.uno_c_index(train.event, train.time, event, time, curves, grid)[0]
    censoring = censoring_survival(train.time, train.event)
    assert uno_c(time, event, log_h, censoring, times=grid) == pytest.approx(expected, abs=1e-12)


def test_the_peer_counts_pairs_of_events_at_one_time(peer):
    """Two events at one time count there, in the order in which they happen to be sorted."""
    time, event = np.array([2.0, 2.0, 3.0]), np.array([True, True, False])
    curves = np.array([[0.2, 0.1], [0.5, 0.4], [0.9, 0.8]])
    value, _, _, comparable = peer.harrell_c_index(event, time, curves, np.array([2.0, 3.0]))
    assert comparable == 3
    assert value in (1.0, pytest.approx(2 / 3))
    counted = harrell_c(time, event, 1.0 - curves, times=[2.0, 3.0], tied_event_times="count")
    assert counted == pytest.approx((1.0 + 2 / 3) / 2)  # the mean of both orders
    assert harrell_c(time, event, 1.0 - curves, times=[2.0, 3.0]) == 1.0
