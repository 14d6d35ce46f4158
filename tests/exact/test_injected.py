"""Names that templates read are declared, never set, and `compile` sets them all."""

import ast
from pathlib import Path

import pytest

from softsurv.exact import injected
from softsurv.exact.base_cases import task_costs, task_points
from softsurv.exact.compile import points_of, price_of
from softsurv.exact.objectives import label_costs
from softsurv.exact.objectives.linear import weighted_sums

DECLARED = set(injected.__annotations__)
MADE = {
    task_costs: lambda: price_of(label_costs.TASK),
    task_points: lambda: points_of(weighted_sums),
}


def names_from_injected(module):
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == injected.__name__]
    return {alias.name for node in found for alias in node.names}


@pytest.mark.parametrize("template", MADE, ids=lambda module: module.__name__)
def test_a_template_finds_what_it_reads(template):
    names = names_from_injected(template)
    assert names
    assert names <= DECLARED
    assert not any(hasattr(template, name) for name in names)  # the template itself has none
    assert names <= set(MADE[template]().function.__globals__)


def test_every_declared_name_is_read_and_none_has_a_value():
    assert set().union(*map(names_from_injected, MADE)) == DECLARED
    assert not any(hasattr(injected, name) for name in DECLARED)
