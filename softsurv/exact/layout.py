"""Scratch of kernels as two pieces of memory. Where its arrays lie is worked out once for each shape of a problem.

To make seventy arrays one by one, and to ask each for its address, takes as long as a short search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from softsurv.exact.kernels.views import Packed, View, start_of, view_of

LINE = 64
"""Bytes of a cache line: every array starts on one, as a vector across two lines costs several times more."""


class Space(NamedTuple):
    """Room for an array."""

    shape: tuple[int, ...]
    zero: bool = False


class Same(NamedTuple):
    """The memory of another array of the structure, in another shape."""

    name: str
    shape: tuple[int, ...]


GIVEN = None
"""In the place of a `Space`: an array that is handed over when scratch is made."""

Spaces = Mapping[str, Any]
"""By field: `Space`, `Same`, `GIVEN`, a whole number, or the spaces of a structure inside."""


class _Place(NamedTuple):
    """Where an array lies: in which piece of memory, from which byte on."""

    zero: bool
    at: int
    shape: tuple[int, ...]
    dtype: Any


class Layout:
    """Where the arrays of a structure lie.

    Parameters
    ----------
    structure : type
        A NamedTuple that kernels read (`views.py`).
    spaces : mapping
    """

    def __init__(self, structure: type, spaces: Spaces) -> None:
        self.view = view_of(structure)
        self.sizes = [0, 0]
        self.given: dict[str, int] = {}  # word that holds the address
        words: list[int] = []
        addresses: tuple[list[int], list[int]] = ([], [])
        self.places = self._lay(self.view, spaces, words, addresses)
        self.words = np.array(words, np.int64)
        self.addresses = tuple(np.array(one, np.intp) for one in addresses)

    def _lay(
        self, view: View, spaces: Spaces, words: list[int], addresses: tuple[list[int], list[int]]
    ) -> dict[str, Any]:
        """Give every field of a view its place; adds its words."""
        places: dict[str, Any] = {}
        for name, (_, kind, dtype) in view.fields.items():
            space = spaces[name]
            if isinstance(kind, View):
                places[name] = self._lay(kind, space, words, addresses)
            elif dtype is None:
                places[name] = space
                words.append(int(space))
            elif space is GIVEN:
                self.given[name] = len(words)
                words += [0] * (1 + kind.ndim)
            else:
                place = places[name] = self._place(space, places, dtype)
                addresses[place.zero].append(len(words))
                words += [place.at, *place.shape]
        return places

    def _place(self, space: Space | Same, places: dict[str, Any], dtype: Any) -> _Place:
        if isinstance(space, Same):
            same: _Place = places[space.name]._replace(shape=space.shape)
            return same
        at = self.sizes[space.zero]
        self.sizes[space.zero] += -(-math.prod(space.shape) * dtype.itemsize // LINE) * LINE
        return _Place(space.zero, at, space.shape, dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of scratch, without the arrays that are handed over."""
        return sum(self.sizes)


class Laid(Packed):
    """Scratch that kernels write to, with words as `Packed` has them."""

    def __init__(self, layout: Layout, **given: np.ndarray) -> None:
        self.view, self.layout = layout.view, layout
        empty, zeros = np.empty(layout.sizes[0] + LINE, np.uint8), np.zeros(layout.sizes[1] + LINE, np.uint8)
        starts = [-start_of(piece) % LINE for piece in (empty, zeros)]
        self.words = layout.words.copy()
        for piece, start, at in zip((empty, zeros), starts, layout.addresses, strict=True):
            self.words[at] += start_of(piece) + start
        for name, array in given.items():
            self.words[layout.given[name] :][: 1 + array.ndim] = start_of(array), *array.shape
        self.address = start_of(self.words)
        self.value = Fields(layout.places, (empty, zeros), starts, given)


class Fields:
    """The arrays of scratch for Python, each made when it is first asked for."""

    def __init__(
        self,
        places: dict[str, Any],
        pieces: tuple[np.ndarray, np.ndarray],
        starts: list[int],
        given: Mapping[str, np.ndarray],
    ) -> None:
        self._memory = places, pieces, starts
        vars(self).update(given)

    def __getattr__(self, name: str) -> Any:
        places, pieces, starts = vars(self)["_memory"]
        if name not in places:
            raise AttributeError(f"scratch has no field {name!r}")
        place = places[name]
        if isinstance(place, dict):
            value: Any = Fields(place, pieces, starts, {})
        elif isinstance(place, _Place):
            value = np.ndarray(place.shape, place.dtype, pieces[place.zero], starts[place.zero] + place.at)
        else:
            value = place
        setattr(self, name, value)
        return value
