"""Progress bars: of an exact search, of the choice of a soft tree, of its training, and of many fits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


class SearchBar:
    """Share of the root's splits done, with bound and incumbent."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(total=100, desc="searching", unit="%")

    def __call__(self, done: float, bound: float, incumbent: float) -> None:
        self._bar.n = round(100 * done)
        self._bar.set_postfix(bound=f"{bound:.6g}", incumbent=f"{incumbent:.6g}")

    def close(self) -> None:
        """Leave the last state on the screen."""
        self._bar.refresh()
        self._bar.close()


@contextmanager
def search_bar(show: bool) -> Iterator[SearchBar | None]:
    """A bar while a search runs, closed also where the search fails; None where it is not to be shown."""
    if not show:
        yield None
        return
    bar = SearchBar()
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def choice_bar(show: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar of the candidates tried; called with what was tried, how many candidates that were, and of how many."""
    if not show:
        yield None
        return
    from tqdm.auto import tqdm

    one_at_a_time = Lock()  # threads try candidates side by side
    with tqdm(desc="choosing", unit=" candidates") as bar:

        def tell(what: str, tried: int, total: int) -> None:
            with one_at_a_time:
                bar.total = max(total, bar.n + tried)  # larger trees than usual may be worth trying
                bar.set_description(f"choosing: {what}", refresh=False)
                bar.update(tried)

        yield tell


@contextmanager
def training_bar(show: bool, rounds: int) -> Iterator[Callable[[int, Tensor], None] | None]:
    """A bar of the rounds that training may take; called with the round and the objectives (M,) of its trees."""
    if not show:
        yield None
        return
    from tqdm.auto import tqdm

    best, one_at_a_time = float("inf"), Lock()  # starts train in parts, each from round 1
    with tqdm(desc="training", total=rounds, unit=" rounds at most") as bar:

        def tell(number: int, objective: Tensor) -> None:
            nonlocal best
            with one_at_a_time:
                best = min(best, float(objective.min()))
                bar.set_postfix(objective=f"{best:.5f}", refresh=False)
                bar.update(max(number - bar.n, 0))

        yield tell


def progress_line(show: bool | None, total: int, what: str, unit: str) -> Any:
    """A bar of tqdm for a call that makes many fits; where ``show`` is None, it is shown on a terminal."""
    from tqdm.auto import tqdm

    shown = sys.stderr.isatty() if show is None else show
    return tqdm(total=total, desc=what, unit=unit, disable=not shown)
