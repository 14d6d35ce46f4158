"""``softsurv export``: a saved tree as text, picture language, function, SQL or ONNX."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from softsurv.commands._output import echo, output_file
from softsurv.commands._recorded import existing_model
from softsurv.errors import InvalidParameterError
from softsurv.files import replace_file

ENDINGS = {"text": (".txt",), "dot": (".dot", ".gv"), "python": (".py",), "sql": (".sql",), "onnx": (".onnx",)}
"""Endings of files by the language that they hold."""

_EPILOG = """\
examples:
  softsurv export model                                  the tree as it is printed
  softsurv export model --out leaf.sql                   SELECT *, (...) AS leaf FROM table
  softsurv export model --as sql --quote '`'             for MySQL and BigQuery
  softsurv export model --out leaf_of.py                 a function of one row, without imports
  softsurv export model --as dot | dot -Tsvg > tree.svg  a drawing by Graphviz
  softsurv export model --out tree.onnx --times 365 730  a soft tree with its survival curves, for other runtimes

SQL and the function give the leaf of a row, missing values as in training; the help of export_sql in Python says what a
database casts before. Only ONNX holds the regression in the leaves of a soft tree.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Arguments of the command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "export",
        help="write a saved tree for databases, programs and Graphviz",
        description="Write a saved tree as text, for Graphviz, as a Python function, as SQL or as ONNX.",
        epilog=_EPILOG,
    )
    parser.add_argument("model", metavar="MODEL", help="the folder that fit wrote")
    parser.add_argument("--as", dest="language", choices=[*ENDINGS], help="default: by the name of --out, else text")
    parser.add_argument("--quote", choices=['"', "`"], help='around names of columns in SQL (default: ")')
    parser.add_argument("--name", help="of the Python function (default: leaf_of)")
    parser.add_argument("--times", metavar="TIME", type=float, nargs="+", help="times of the survival curves in ONNX")
    parser.add_argument("--out", metavar="FILE", help="default: write to the screen")
    return parser


def run(args: argparse.Namespace) -> int:
    """Write the tree."""
    language = _language(args)
    out = None if args.out is None else output_file(args.out)
    existing_model(args.model)

    from softsurv.estimators.saved import load_model

    model = load_model(args.model, device="cpu")
    if language == "onnx":
        from softsurv.explore import export_onnx

        assert out is not None
        export_onnx(model, out, times=args.times)
    else:
        text = _text(model, language, args)
        if out is None:
            _show(text)
            return 0
        replace_file(out, text)
    echo(f"{language} of the tree in {args.out}")
    return 0


def _language(args: argparse.Namespace) -> str:
    """The language that is asked for, or that the name of the file says; options of another one are wrong usage."""
    language: str = args.language or _by_name(args.out)
    for option, own in (("quote", "sql"), ("name", "python"), ("times", "onnx")):
        if getattr(args, option) is not None and language != own:
            args.usage_error(f"--{option} is for {own}, and the tree is written as {language}; add --as {own}")
    if language == "onnx" and args.out is None:
        args.usage_error("ONNX is no text; add --out FILE")
    return language


def _by_name(out: str | None) -> str:
    """What a file of this name holds."""
    if out is None:
        return "text"
    ending = Path(out).suffix.lower()
    for language, endings in ENDINGS.items():
        if ending in endings:
            return language
    known = ", ".join(ending for endings in ENDINGS.values() for ending in endings)
    raise InvalidParameterError(f"--out must end in one of {known} where --as is left out, got {out!r}; add --as")


def _text(model: Any, language: str, args: argparse.Namespace) -> str:
    """The tree in a language, with a line end."""
    if language == "sql":
        text = model.export_sql(args.quote or '"')
    elif language == "python":
        text = model.export_python(args.name or "leaf_of")
    else:
        text = model.export_dot() if language == "dot" else model.export_text()
    return f"{str(text).rstrip()}\n"


def _show(text: str) -> None:
    """Write to a terminal without characters that it would obey, to another program the text as it is."""
    if sys.stdout.isatty():
        echo(text.rstrip())
    else:
        sys.stdout.write(text)
