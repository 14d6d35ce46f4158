"""Names on disk change with every file that is compiled into the entries."""

import ast
from pathlib import Path

import softsurv.exact.brier as room
from softsurv.exact.brier import jit
from softsurv.exact.brier.base_case import expand
from softsurv.exact.brier.tiles import tile
from softsurv.exact.jit import source_digest

FOLDER = Path(room.__file__).parent


def imported(name):
    """Modules of the room that a module imports, and those that these import."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(room.__name__):
            rest = node.module.removeprefix(room.__name__).lstrip(".")
            found |= {rest} if rest else {alias.name for alias in node.names}
    return found.union({name}, *(imported(one) for one in found))


def test_all_files_that_a_compiled_entry_can_hold_are_in_its_name():
    assert set(jit.COMPILED) == imported("base_case") | imported("tiles")
    expand.compile()
    assert expand.py_func.__qualname__ == f"expand_{source_digest(jit.FILES)}"
    tile.compile()
    assert tile.function.__qualname__ == f"tile_tiles_{source_digest(jit.FILES)}"
