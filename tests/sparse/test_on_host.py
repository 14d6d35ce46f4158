"""Tables of a device come to the host as one copy, in double precision.

`tests/gpu` counts the waits.
"""

import numpy as np
import pytest
import torch

from softsurv.sparse.on_host import as_one, on_host

FIRST = torch.arange(6, dtype=torch.float32).view(2, 3)
TABLES = [FIRST, (FIRST.double() / 7)[0], torch.zeros(0, 4)]
EXPECTED = [np.arange(6.0).reshape(2, 3), np.arange(3.0) / 7, np.zeros((0, 4))]


@pytest.mark.parametrize("way", [on_host, as_one], ids=["of a CPU", "of a device"])
def test_values_types_and_shapes(way):
    for found, wanted in zip(way(TABLES), EXPECTED, strict=True):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, wanted)


def test_tables_of_a_device_are_parts_of_one_copy():
    first, second, _ = as_one(TABLES)
    assert first.base is not None
    assert second.__array_interface__["data"][0] == first.__array_interface__["data"][0] + first.nbytes


def test_nothing_is_nothing():
    assert on_host([]) == []


def test_tables_of_a_cpu_are_not_copied():
    table = torch.ones(3, dtype=torch.float64)
    assert np.shares_memory(on_host([table])[0], table.numpy())
