"""A value that is worked out when somebody asks for it."""

import gc
import pickle
import weakref

from softsurv.estimators.shared.on_demand import OnDemand


class Rows:
    """Something large that a value is worked out from."""


def test_it_is_worked_out_once_and_lets_its_rows_go():
    calls, rows = [], Rows()
    alive = weakref.ref(rows)
    late = OnDemand(lambda rows=rows: calls.append(rows is not None) or 42)
    del rows
    gc.collect()
    assert calls == []
    assert alive() is not None
    assert (late.value, late.value) == (42, 42)
    assert calls == [True]
    gc.collect()
    assert alive() is None


def test_a_pickle_holds_what_the_function_gave():
    late = OnDemand(lambda: [1, 2])  # a lambda cannot be pickled itself
    again = pickle.loads(pickle.dumps(late))
    assert vars(again) == {"value": [1, 2]}
