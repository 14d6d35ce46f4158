"""The command line: ``softsurv <command>``; each command is one module in `softsurv.commands`."""

from __future__ import annotations

import argparse
import difflib
import errno
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import NoReturn

from softsurv import __version__
from softsurv.commands import modules
from softsurv.commands._output import readable, write_to_nobody
from softsurv.errors import SoftsurvError

DONE, FAILED, USAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
"""Exit codes; argparse itself ends with USAGE."""

_EPILOG = """\
first steps:
  softsurv demo                                            train, test and draw a tree on real data
  softsurv datasets gbsg2 --out gbsg2.csv                  real data as a file
  softsurv fit gbsg2.csv --time time --event event --out model
  softsurv evaluate model gbsg2.csv                        the outcome's columns are those of the fit
  softsurv predict model gbsg2.csv --times 365 730 --out predictions.csv
  softsurv report model gbsg2.csv --out report.html        a page to hand over

exit codes: 0 done, 1 something was wrong with the input (one sentence says what), 2 wrong usage, 130 interrupted,
143 ended by SIGTERM
"""


def build_parser() -> argparse.ArgumentParser:
    """The parser with every command of `softsurv.commands`."""
    parser = argparse.ArgumentParser(
        prog="softsurv",
        description="Survival trees that people can read: soft trees and provably optimal trees.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"softsurv {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in modules():
        _add_common(module, subparsers)
    return parser


def _add_common(module: ModuleType, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """A command's parser with what all commands share."""
    parser: argparse.ArgumentParser = module.add_parser(subparsers)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.allow_abbrev = False  # what a script abbreviates would break when an option is added
    wanted = [f"[{one.metavar}]" if one.nargs == "?" else one.metavar for one in parser._get_positional_actions()]
    parser.usage = " ".join(["%(prog)s", *map(str, wanted), "[options]"])  # all options would hide what is wrong
    parser.set_defaults(run=module.run, usage_error=parser.error)
    shared = parser.add_argument_group("messages")
    shared.add_argument("--verbose", action="store_true", help="log what is being done")
    shared.add_argument("--debug", action="store_true", help="show where an error comes from")


class _Terminated(KeyboardInterrupt):
    """Raised by SIGTERM."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise _Terminated


@contextmanager
def _hears_sigterm() -> Iterator[None]:
    """Within the block SIGTERM ends the work as Ctrl-C does: processes of a study end, and files half written go."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def _imports_nothing_from_here() -> Iterator[None]:
    """Keep processes that a command starts, such as joblib's workers, from taking modules out of the working folder.

    Python looks there for what ``-c`` and ``-m`` import, and the folder may be anybody's. The command itself does not.
    """
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = before or "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)


@_hears_sigterm()
@_imports_nothing_from_here()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of the process by default.

    Notes
    -----
    What is wrong with the input is told in one sentence on stderr; ``--debug`` raises it instead.
    """
    debug = False
    _open_streams()
    try:
        parser = build_parser()
        args, unknown = parser.parse_known_args(argv)
        if unknown:
            _refuse(parser, args.command, unknown[0])
        if args.command is None:
            parser.print_help()
            return DONE
        debug = args.debug
        logging.basicConfig(level=logging.INFO if args.verbose else logging.WARNING, format="%(name)s: %(message)s")
        with warnings.catch_warnings():
            warnings.filterwarnings("default", category=UserWarning)
            warnings.showwarning = _show_warning
            code: int = args.run(args)
            sys.stdout.flush()
            return code
    except _Terminated:
        _say("ended by SIGTERM")
        return TERMINATED
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        write_to_nobody()
        return DONE
    except Exception as error:
        if isinstance(error, SystemError) and _was_interrupted(error):
            _say("interrupted")
            return INTERRUPTED
        if debug:
            raise
        _say(f"error: {_sentence(error)}")
        return FAILED


def _was_interrupted(error: SystemError) -> bool:
    """Whether Python reports so that a Ctrl-C came where compiled code made an array."""
    from softsurv.loops import was_interrupted  # numba comes with it, and is there where its code was called

    return was_interrupted(error)


def _open_streams() -> None:
    """Let a process that was started without stdout or stderr, as by ``>&-``, write to nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  open as long as the process


def _refuse(parser: argparse.ArgumentParser, command: str | None, unknown: str) -> NoReturn:
    """Wrong usage: what no argument takes, with the option that may be meant."""
    if command is not None:
        subparsers = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
        parser = subparsers.choices[command]
    if not unknown.startswith("-"):
        parser.error(f"no argument takes {unknown!r}; put quotes around a value that holds blanks")
    name = unknown.partition("=")[0]
    known = parser._option_string_actions
    near = [one for one in known if one.startswith(name)] or difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    parser.error(f"there is no option {name}; {hint}--help lists all")


_NO_MEMORY = ("can't allocate memory", "out of memory")
"""What torch says on the host and on a GPU; it raises no `MemoryError`."""


def _sentence(error: Exception) -> str:
    """What went wrong, in one line."""
    return " ".join(_words(error).split())


def _words(error: Exception) -> str:
    if isinstance(error, SoftsurvError):
        return str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        place = "" if error.filename is None else f" for {error.filename!r}"
        return f"no space left on the disk{place}; free some, what was there before is unharmed"
    if isinstance(error, UnicodeEncodeError):
        return f"the screen cannot show {error.object[error.start : error.end]!a} in {error.encoding}; write to --out"
    if isinstance(error, MemoryError) or any(words in str(error) for words in _NO_MEMORY):
        return "not enough memory; use fewer rows or columns, or --memory"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename!r}: {error.strerror}; check the path"
    if isinstance(error, ImportError) and "pip install" in str(error):
        return str(error)
    if isinstance(error, ImportError):
        return f"{error}; install what is missing"
    return f"unexpected {type(error).__name__}: {error}; run again with --debug and report what it shows"


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _say(f"note: {' '.join(str(message).split())}")


def _say(text: str) -> None:
    sys.stderr.write(f"softsurv: {readable(text)}\n")


if __name__ == "__main__":
    sys.exit(main())
