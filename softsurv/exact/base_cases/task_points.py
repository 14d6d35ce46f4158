"""The objectives of a leaf, as a rule has them: what is compiled for each rule where trees are listed.

Template module: `softsurv.exact.compile` executes it once per rule with the global ``leaf_points``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softsurv.exact.entries import ADDRESS, entry
from softsurv.exact.kernels.lists import Listing
from softsurv.exact.kernels.views import floats_at, matrix_at

if TYPE_CHECKING:
    from softsurv.exact.injected import leaf_points


@entry(Listing, ADDRESS, ADDRESS)
def points(listing, sums, out):
    """The objectives of leaves. Those of a leaf under every label. ``sums`` (W,), ``out`` (L, D)."""
    label = listing.label
    leaf_points(floats_at(sums, (listing.total.shape[0],)), listing.weights, matrix_at(out, label.shape[1:]))
