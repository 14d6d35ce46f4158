"""The simplex search where a start has no finite value."""

import pytest
import torch
from oracles.valleys import START, TO_THE_END, VALLEYS, WithHole

from softsurv.soft.bfgs import BfgsSettings, minimise_dense
from softsurv.soft.nelder_mead import HALVINGS, where_finite
from softsurv.soft.watch import never_waiting


def test_a_start_without_a_value_is_left_by_the_simplex_search():
    function, start = WithHole(VALLEYS.steepness), START.clone()
    start[1, 0] = 5.0005
    value = function.value_and_gradient(start)[0]
    assert torch.isnan(value).tolist() == [False, True, False]
    found = where_finite(function, (start,), value)[0]
    torch.testing.assert_close(found[[0, 2]], start[[0, 2]])
    torch.testing.assert_close(found[1], torch.ones(2, dtype=torch.float64), atol=1e-3, rtol=0)
    end = minimise_dense(function, (start,), TO_THE_END)
    torch.testing.assert_close(end.point[0], torch.ones_like(start), atol=1e-5, rtol=0)


@pytest.mark.parametrize("settings", [TO_THE_END, BfgsSettings(max_iterations=4)])
def test_a_start_without_a_value_changes_nothing_for_the_others_nor_where_looks_are_late(settings):
    start, nan = START.clone(), torch.tensor([1])
    start[nan, 0] = 5.0005
    function, others = WithHole(VALLEYS.steepness), torch.tensor([0, 2])
    found = minimise_dense(function, (start,), settings)
    alone = minimise_dense(function.take(others), (start[others],), settings)
    better = where_finite(function.take(nan), (start[nan],), torch.full((1,), torch.nan))
    moved = minimise_dense(function.take(nan), better, settings)
    for whole, one, two in zip(found.tensors, alone.tensors, moved.tensors, strict=True):
        torch.testing.assert_close(whole, torch.cat([one[:1], two, one[1:]]), rtol=1e-9, atol=1e-12)
    with never_waiting():
        late = minimise_dense(function, (start,), settings)
    torch.testing.assert_close(late.tensors, found.tensors, rtol=1e-9, atol=1e-12)


def test_a_start_without_a_value_nearby_stays():
    start = torch.full((1, 2), 1e6, dtype=torch.float64)
    function = WithHole(VALLEYS.steepness[:1])
    end = minimise_dense(function, (start,), BfgsSettings(max_iterations=3))
    assert torch.isnan(end.loss).all() or bool((end.point[0][:, 0] <= 5).all())


def test_a_search_that_finds_no_value_ends_when_its_simplex_is_a_point(monkeypatch):
    """It asked 40,000 times, most of them at the start itself."""
    asked = []

    def no_value(self, x):
        asked.append(x)
        return torch.full((1,), torch.nan, dtype=torch.float64), torch.zeros_like(x)

    monkeypatch.setattr(WithHole, "value_and_gradient", no_value)
    start = torch.full((1, 2), 1e6, dtype=torch.float64)
    (found,) = where_finite(WithHole(VALLEYS.steepness[:1]), (start,), torch.full((1,), torch.nan))
    assert torch.equal(found, start)
    assert len(asked) <= 4 * HALVINGS + 3  # two points outside and two corners moved, each time
    assert (asked[-1] - start).abs().max() <= 1e-9
