"""The one way by which what a device found comes to the host, where rules are sought and compared.

Each call waits for the device once, whatever the number of tables.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softsurv.arrays import FloatArray


def on_host(tables: Sequence[Tensor]) -> list[FloatArray]:
    """The tables in double precision, all of them waited for at once and copied as one."""
    if not tables:
        return []
    if all(table.device.type == "cpu" for table in tables):
        return [table.double().numpy() for table in tables]
    return as_one(tables)


def as_one(tables: Sequence[Tensor]) -> list[FloatArray]:
    """The tables as parts of one copy."""
    flat = torch.cat([table.flatten().double() for table in tables]).cpu()
    parts = flat.split([table.numel() for table in tables])
    return [part.view(table.shape).numpy() for part, table in zip(parts, tables, strict=True)]
