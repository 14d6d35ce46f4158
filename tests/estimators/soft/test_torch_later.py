"""A stand-in for torch that loads it when one of its names is used."""

import sys
from types import SimpleNamespace

import pytest
import torch

from softsurv.estimators.soft import torch_later


def test_its_names_are_those_of_torch():
    assert torch_later.float64 is torch.float64
    assert torch_later.no_grad is torch.no_grad
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = torch_later.no_such_name


def test_a_name_is_looked_up_when_it_is_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(float64="another"))
    assert torch_later.float64 == "another"
    assert not {"torch", "float64"} & set(vars(torch_later))
