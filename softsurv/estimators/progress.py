"""The progress bar of an exact search."""

from __future__ import annotations


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
