"""Encoded features for tests of what a tree says: a number, a category of three levels, a mark of missing values."""

from softsurv.data.encoding import OutputColumn, Source

COLUMNS = [
    OutputColumn("age", "age", "number", offset=20.0, scale=50.0),
    OutputColumn("grade=II", "grade", "level", "II"),
    OutputColumn("grade=III", "grade", "level", "III"),
    OutputColumn("age is missing", "age", "missing"),
]
SOURCES = [Source("age", None, 52.0), Source("grade", ("I", "II", "III"), "II")]
