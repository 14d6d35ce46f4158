"""When a search looks at the cuts one by one (`cuts/node.py`), by what its base cases would do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softsurv.arrays import FloatArray
from softsurv.exact.row_kinds import look_of_few_kinds

CUT_WORK = 200.0
"""The search by cuts looks at about so many cuts of a subset, each in one pass over its columns; the base cases look at
all pairs of cuts."""

CUT_WORK_OF = {
    "two labels": 0.5 * CUT_WORK,
    "labels": 4.0 * CUT_WORK,
    "two costs": 0.25 * CUT_WORK,
    "costs": CUT_WORK,
    "kinds": 0.75 * CUT_WORK,
    "lanes": 2.25 * CUT_WORK,
    "two counts": 0.3 * CUT_WORK,
    "other": CUT_WORK,
}
"""From how many times codes squared over cells on the search by cuts is faster, as whole searches of depth three took
on 90 to 3,000 rows of 5 to 15 columns: by what base cases do where the task is known. Where a leaf costs the least of
its sums, rows of few kinds are labels, which are counted by bits, and others are costs; where it does not, bounds skip
little among rows of few kinds, such as classes for the Gini index. Two counts are weighed anew in each of many
searches, for F1 and the Matthews correlation. Histograms are added up eight at a time or not."""

LIMITED_SHARE = 0.6
"""Share of this from which on it is faster under a limit on the size of leaves, measured likewise with 5 to 20 rows:
the recursion has no interval bound then (`bounds.py`), and the search by cuts has one."""

CUT_ROWS = 32
"""With fewer distinct rows a search by base cases takes some ten milliseconds. With 40 rows of 15 numbers at every cut
it takes three times as long as the search by cuts."""

CUT_CODES_EACH = 12
"""With fewer bins of a feature, on average, intervals of cuts skip little: trees of depth two over hundreds of columns
with 5 to 10 cuts each took 3 to 20 times as long cut by cut, with 15 to 30 cuts about as long."""

CUT_CODES = 256
"""With fewer bins (all features together) the base cases are faster whatever the rows."""


def kind_of_search(linear: bool, statistics: FloatArray, in_lanes: bool) -> str:
    """What base cases do over rows with these statistics (N, K), a key of `CUT_WORK_OF`.

    ``linear``: a leaf costs the least of its sums. ``in_lanes``: histograms would be added up eight at a time.
    """
    few = look_of_few_kinds(statistics)
    if linear:
        return ("two " if statistics.shape[1] == 2 else "") + ("labels" if few else "costs")
    if few:
        return "kinds"
    return "lanes" if in_lanes else "other"


def cuts_pay(codes: NDArray[np.integer], n_codes: int, kind: str, limited: bool) -> bool:
    """Whether the cuts of the distinct rows (U, P) are so many that they are searched one by one.

    ``kind``: a key of `CUT_WORK_OF`. ``limited``: leaves have a least size.
    """
    work = CUT_WORK_OF[kind] * (LIMITED_SHARE if limited else 1.0)
    busy = n_codes > CUT_CODES and n_codes >= CUT_CODES_EACH * codes.shape[1]
    return busy and float(n_codes) ** 2 > work * codes.size and len(codes) >= CUT_ROWS
