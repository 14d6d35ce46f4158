"""The commands of ``softsurv``, one module each.

To add one, write ``softsurv/commands/<name>.py`` with

- ``add_parser(subparsers)``, which calls ``subparsers.add_parser("<name>", ...)``, adds arguments and returns the
  parser, and
- ``run(args) -> int``, which does the work and returns the exit code.

It is found by its file; where the file's name has an underscore, the command's has a hyphen. Import what is heavy
inside ``run``, so that ``--help`` stays quick. Modules whose names begin with an underscore are no commands.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules() -> list[ModuleType]:
    """The module of every command, in alphabetical order."""
    names = sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))
    return [import_module(f"{__name__}.{name}") for name in names]
