"""``softsurv fit --memory``: options that go together, and what a streamed fit says and leaves."""

from __future__ import annotations

import argparse

import pytest
from oracles.trial import OUTCOME, QUICK, make_table

from softsurv import SoftSurvivalTree
from softsurv.cli import build_parser, main
from softsurv.commands._streamed import fit_streamed, is_streamed
from softsurv.errors import InvalidParameterError, SoftsurvWarning


def parsed(*more, model="soft"):
    """Arguments of a fit, as the command reads them."""
    args = build_parser().parse_args(["fit", "trial.csv", *OUTCOME, "--model", model, *more])

    def usage_error(message):
        raise argparse.ArgumentError(None, message)

    args.usage_error = usage_error
    return args


def test_rows_are_streamed_where_memory_is_told():
    assert is_streamed(parsed("--memory", "1GB"))
    assert not is_streamed(parsed())
    everything = ["--sample-rows", "10", "--sweeps", "2", "--checkpoint", "c", "--folder", "f", "--weight", "w"]
    assert is_streamed(parsed("--memory", "1GB", *everything))


@pytest.mark.parametrize(
    "option", [("--sample-rows", "9"), ("--sweeps", "2"), ("--checkpoint", "c"), ("--folder", "f")]
)
def test_options_of_streaming_need_memory(option):
    with pytest.raises(argparse.ArgumentError, match=f"{option[0]} is no option without --memory"):
        is_streamed(parsed(*option))


@pytest.mark.parametrize("option", [("--entry", "e"), ("--upper", "u"), ("--group", "g"), ("--test-size", "0.2")])
def test_what_streaming_does_not_know_is_refused(option):
    with pytest.raises(argparse.ArgumentError, match=f"{option[0]} is no option with --memory"):
        is_streamed(parsed("--memory", "1GB", *option))


def test_an_optimal_tree_is_not_streamed():
    with pytest.raises(InvalidParameterError, match="got --model optimal; leave one out"):
        is_streamed(parsed("--memory", "1GB", model="optimal"))


def test_several_processes_must_share_the_rows(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InvalidParameterError, match="--memory must be given under torchrun"):
        is_streamed(parsed())
    assert is_streamed(parsed("--memory", "1GB"))


@pytest.fixture
def model():
    return SoftSurvivalTree(depth=0, leaf="weibull", max_terms=None, l2=1.0, shrinkage=1.0, routing_l2=1.0)


@pytest.mark.filterwarnings("ignore:the training of the tree took all its")
@pytest.mark.parametrize("rank", ["0", "1"])
def test_the_first_process_alone_speaks(rank, model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK", rank)
    make_table().to_csv("trial.csv", index=False)
    args = parsed("--memory", "1MB", "--sweeps", "1", "--drop", "id", "status", *QUICK)
    record = {"data": {"fingerprint": "other"}}
    if rank == "0":
        with pytest.warns(SoftsurvWarning, match="the data differ"):
            found = fit_streamed(args, model, record)
        assert found == model.report_.details["fingerprint"]
        assert capsys.readouterr().out.startswith("trial.csv: 80 rows, ")
    else:
        assert fit_streamed(args, model, record) is None
        assert capsys.readouterr().out == ""
    assert model.feature_names_in_.tolist() == ["age", "arm"]


def test_a_limit_of_sweeps_that_ended_the_training_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("trial.csv", index=False)
    penalties = ["--depth", "1", "--l2", "1", "--shrinkage", "1", "--routing-l2", "1"]
    command = ["fit", "trial.csv", *OUTCOME, "--memory", "1MB", *penalties, "--out", "model"]
    assert main([*command, "--sweeps", "1", "--drop", "id", "status"]) == 0
    assert "took all its 1 sweeps without converging; raise max_sweeps (--sweeps)" in capsys.readouterr().err
