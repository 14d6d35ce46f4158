"""Follow a printed soft or optimal tree by hand: an evaluator of ``export_text`` that knows nothing of the package."""

import math
import re
from fractions import Fraction

NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"


class PrintedTree:
    """The text of a tree, and the names of the table's columns."""

    def __init__(self, text, names):
        self.names = sorted(map(str, names), key=len, reverse=True)
        lines = text.split("\n")
        self.fills, self.points, self.nodes = {}, {}, []
        in_table = False
        for number, line in enumerate(lines):
            if line.startswith("Missing values: "):
                for part in line.removeprefix("Missing values: ").removesuffix(".").split(", "):
                    name, _, value = part.partition(" counts as ")
                    self.fills[name] = value
            elif line.startswith("points per unit"):
                self._read_points(lines[number:])
                in_table = True
            elif (
                not in_table
                and line.strip()
                and not line.startswith(("The splits are dense", "Taken out", "One ", "Within "))
            ):
                level = (len(line) - len(line.lstrip(" "))) // 4
                self.nodes.append((level, re.sub(r"^(yes: |no:  )", "", line.strip())))

    def _read_points(self, lines):
        labels = lines[0].split("  ")[1:]
        labels = [label.strip() for label in labels if label.strip()]
        for line in lines[1:]:
            cells = re.split(r"\s{2,}", line.rstrip())
            if len(cells) != len(labels) + 1:
                break
            for label, cell in zip(labels, cells[1:], strict=True):
                self.points.setdefault(label, []).append((cells[0], float(cell)))

    def leaf(self, row):
        """Leaf of one row, a mapping from column to value."""
        at = 0
        while True:
            level, text = self.nodes[at]
            found = re.match(r"leaf (\d+):", text)
            if found:
                return int(found[1])
            children = [k for k in range(at + 1, len(self.nodes)) if self.nodes[k][0] == level + 1][:2]
            at = children[0] if self.holds(text, row) else children[1]

    def holds(self, rule, row):
        """Whether a printed rule holds for a row."""
        hard = self._question(rule, row)
        if hard is not None:
            return hard
        dense = re.fullmatch(rf"points (\S+) > (-?{NUMBER})", rule)
        if dense:
            return sum(value * self.term(name, row) for name, value in self.points[dense[1]]) > float(dense[2])
        found = re.fullmatch(r"(.*) in \{(.*)\}", rule)
        if found and found[1] in self.names:
            return self.level(found[1], row) in self.levels(found[2])
        found = re.fullmatch(r"(.*?) = (.*)", rule)
        if found and found[1] in self.names:
            return self.level(found[1], row) == self.levels(found[2])[0]
        found = re.fullmatch(rf"(.*) < (-?{NUMBER})", rule)
        if found and found[1] in self.names:
            return self.value(found[1], row) < float(found[2])
        found = re.fullmatch(rf"(.*) > (-?{NUMBER})", rule)
        assert found, rule
        return self.score(found[1], row) > Fraction(found[2])

    def _question(self, rule, row):
        """Whether a question of an optimal tree holds; None where the rule is not of that form."""
        if rule.removesuffix(" is missing") in self.names:
            return is_missing(row[rule.removesuffix(" is missing")])
        known = rule.removesuffix(" or missing")
        name = next((n for n in self.names if re.match(rf"{re.escape(n)} (<=|=|in) (?!\{{)", known)), None)
        if name is None:
            return None
        if is_missing(row[name]) and name not in self.fills:
            return known != rule
        sign, _, rest = known.removeprefix(f"{name} ").partition(" ")
        return self.value(name, row) <= float(rest) if sign == "<=" else self.level(name, row) in self.levels(rest)

    def score(self, text, row):
        """Sum of printed terms, exactly: what is printed are decimals."""
        total, rest, first = Fraction(0), text, True
        while rest:
            sign = re.match(r"-" if first else r" ([+-]) ", rest)
            minus = bool(sign) and "-" in sign[0]
            rest = rest[sign.end() :] if sign else rest
            size = re.match(rf"({NUMBER}) ", rest)
            name = next((n for n in self.names if rest.startswith(n) and self.ends(rest[len(n) :])), None)
            if name is None and size:
                rest = rest[size.end() :]
            factor = Fraction(size[1]) if size and name is None else Fraction(1)
            name = next((n for n in self.names if rest.startswith(n) and self.ends(rest[len(n) :])), None)
            term = name or re.match(r"\[(?:[^\"\]]|\"(?:[^\"\\]|\\.)*\")*\]", rest)[0]
            rest, first = rest[len(term) :], False
            value = self.term(term, row)
            exact = Fraction(str(value)) if math.isfinite(value) else value
            total = total + (-factor if minus else factor) * exact
        return total

    @staticmethod
    def ends(rest):
        return not rest or rest.startswith((" + ", " - "))

    def term(self, text, row):
        """A feature, or the indicator of a level in brackets."""
        if text in self.names:
            return self.value(text, row)
        source, _, level = text[1:-1].partition(" = ")
        return float(self.level(source, row) == self.levels(level)[0])

    def value(self, name, row):
        value = row[name]
        return float(self.fills[name]) if is_missing(value) else float(value)

    def level(self, name, row):
        value = row[name]
        if is_missing(value):
            return self.fills[name]
        return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

    @staticmethod
    def levels(text):
        """Levels of a printed set; those in quotes may hold anything."""
        found = re.findall(r"\"((?:[^\"\\]|\\.)*)\"|([^,\s][^,]*)", text)
        return [re.sub(r"\\(.)", r"\1", quoted) if quoted else plain for quoted, plain in found]


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value)) or str(value) in ("<NA>", "nan", "NaT")
