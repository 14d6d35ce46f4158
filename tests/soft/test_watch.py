"""What the host knows of a device without waiting: the newest copy, and never too far ahead."""

from dataclasses import replace

import torch
from oracles.looks import Slow

from softsurv.soft.watch import Watch, never_waiting, runs_ahead


def test_a_look_in_time_is_the_mask_itself():
    mask = torch.tensor([True, False])
    assert Watch(late=False)(mask) is mask


def test_a_late_look_that_has_arrived_is_known_at_once():
    watch, mask = Watch(late=True), torch.tensor([True, True])
    found = watch(mask)
    mask[0] = False
    assert found.tolist() == [True, True]  # a copy
    assert watch(mask).tolist() == [False, True]
    assert not watch.copies


def test_a_look_that_is_late_is_known_when_the_next_is_on_its_way():
    watch = Watch(late=True)
    watch.send(torch.tensor([True, False]))
    watch.copies[-1] = replace(watch.copies[-1], event=Slow())
    assert watch.known() is None
    assert watch(torch.tensor([False, False])).tolist() == [False, False]  # two were under way


def test_copies_under_way_tell_of_the_trees_that_stay():
    watch, mask = Watch(late=True), torch.tensor([True, False, True, False])
    watch.send(mask)
    watch.narrow(torch.tensor([1, 2, 3]))
    watch.narrow(torch.tensor([0, 1]))
    assert watch.known().tolist() == [False, True]
    assert watch(torch.tensor([False, False])).tolist() == [False, False]


def test_what_is_sent_in_time_is_known_at_once():
    watch, mask = Watch(late=True), torch.tensor([True, True])
    assert watch.known() is None
    watch.send(mask)
    mask[0] = False
    assert watch.known().tolist() == [True, True]
    assert watch.known() is None  # it has been told


def test_the_last_look_is_waited_for():
    watch = Watch(late=True)
    assert watch.last() is None
    for mask in ([True, True], [False, True]):
        watch.send(torch.tensor(mask))
        watch.copies[-1] = replace(watch.copies[-1], event=Slow())
    assert watch.last().tolist() == [False, True]
    assert watch.last() is None


def test_the_host_is_one_look_ahead_at_most():
    watch, looks = Watch(late=True), []
    for _ in range(3):
        watch.send(torch.ones(1, dtype=torch.bool))
        looks.append(Slow())
        watch.copies[-1] = replace(watch.copies[-1], event=looks[-1])
        found = watch.known()
        assert (found is None) == (len(looks) == 1)
        assert [one.waited for one in looks] == [True] * (len(looks) - 1) + [False]


def test_a_cpu_is_looked_at_at_once_but_in_tests():
    assert not runs_ahead(torch.zeros(1))
    with never_waiting():
        assert runs_ahead(torch.zeros(1))
    assert not runs_ahead(torch.zeros(1))
