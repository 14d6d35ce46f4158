"""A small table of spells: three subjects, two of them with two rows, two causes."""

import pandas as pd

from softsurv.data.readers import survival_data

TABLE = pd.DataFrame(
    {
        "who": ["a", "a", "b", "c", "c"],
        "from": [0.0, 3.0, 0.0, 0.0, 2.0],
        "to": [3.0, 5.0, 4.0, 2.0, 6.0],
        "why": [0, 2, 1, 0, 0],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0],
    }
)


def read(table=TABLE, **changes):
    """The table as data; what is changed are arguments of the reader."""
    return survival_data(table, **({"start": "from", "stop": "to", "cause": "why", "id": "who"} | changes))
