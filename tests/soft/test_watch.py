"""What the host knows of a device without waiting: the newest copy, and never too far ahead."""

import torch

from softsurv.soft.watch import LOOK_EVERY, Watch, never_waiting, runs_ahead


class Event:
    """A copy that arrives when it is waited for."""

    def __init__(self):
        self.waited = False

    def query(self):
        return self.waited

    def synchronize(self):
        self.waited = True


def test_a_look_in_time_is_the_mask_itself():
    mask = torch.tensor([True, False])
    assert Watch(late=False)(mask) is mask


def test_a_late_look_is_the_one_before():
    watch, mask = Watch(late=True), torch.tensor([True, True])
    assert watch(mask) is None
    mask[0] = False
    assert watch(mask).tolist() == [True, True]
    assert watch(mask).tolist() == [False, True]
    watch.narrow()
    assert watch(mask) is None


def test_the_host_waits_where_it_is_four_rounds_ahead():
    for rounds in (1, LOOK_EVERY):
        watch = Watch(late=True)
        for _ in range(LOOK_EVERY // rounds):
            assert watch.copies == [] or all(not event.waited for _, event, _ in watch.copies)
            watch(torch.ones(1, dtype=torch.bool), rounds)
            copy, _, count = watch.copies[-1]
            watch.copies[-1] = copy, Event(), count
        oldest = watch.copies[0][1]
        assert watch(torch.ones(1, dtype=torch.bool), rounds) is not None
        assert oldest.waited


def test_a_cpu_is_looked_at_at_once_but_in_tests():
    assert not runs_ahead(torch.zeros(1))
    with never_waiting():
        assert runs_ahead(torch.zeros(1))
    assert not runs_ahead(torch.zeros(1))
