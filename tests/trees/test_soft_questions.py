"""Questions of a soft tree in a language of the test's own: each kind of term is asked for by its words."""

import torch
from oracles.encoded import COLUMNS, SOURCES
from oracles.soft_rules import stump

from softsurv.data.encoding import OutputColumn
from softsurv.hazards import get_family
from softsurv.trees.linear_rule import LinearRule
from softsurv.trees.soft_questions import CHAIN, Wording, question
from softsurv.trees.soft_tree import SoftTree


class Plain(Wording):
    """Words that a test can read."""

    def literal(self, value):
        return f"{value:g}"

    def number(self, source):
        return source

    def is_one_of(self, source, levels):
        return f"{source} in {'/'.join(levels)}"

    def if_level(self, source, level, coefficient):
        return f"{coefficient:g}[{source}={level}]"

    def if_missing(self, source, coefficient):
        return f"{coefficient:g}[no {source}]"


def asked(rule):
    """The question of one rule."""
    return question(stump(rule), 0, Plain(COLUMNS, SOURCES))


def test_each_kind_of_rule_has_its_words():
    assert asked(LinearRule((0,), (1.0,), 45.0)) == "age > 45"
    assert asked(LinearRule((0,), (-1.0,), -45.0)) == "age < 45"
    assert asked(LinearRule((1, 2), (1.0, 1.0), 0.5)) == "grade in II/III"
    assert asked(LinearRule((0, 2, 3), (1.0, 2.5, -1.0), 60.0)) == "1 * age + 2.5[grade=III] + -1[no age] > 60"


def test_long_sums_are_bracketed_in_halves():
    columns = [OutputColumn(f"x{k}", f"x{k}", "number") for k in range(CHAIN + 1)]
    tree = SoftTree(1, len(columns), get_family("exponential"))
    with torch.no_grad():
        tree.routing[0, 0, 1:] = 2.0
    found = question(tree, 0, Plain(columns, []))
    half = CHAIN // 2
    assert found.startswith("(2 * x0 + 2 * x1 + ")
    assert found.endswith(f" + 2 * x{CHAIN}) > 0")
    assert f"2 * x{half - 1}) + (2 * x{half} + " in found
