"""The progress bar of an exact search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
