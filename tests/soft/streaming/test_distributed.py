"""Two real processes on loopback: the same model as one, and the end of the job when one of them is killed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from softsurv import SoftSurvivalTree, load_model
from softsurv.cli import main
from softsurv.data.chunks import Table
from softsurv.errors import SoftsurvError
from softsurv.estimators.stream import fit_stream
from softsurv.soft.streaming.distributed import Ranks, RunningSum, join
from softsurv.soft.streaming.launched import is_first, is_launched

SCRIPT = Path(__file__).with_name("_ranks.py")
ARGUMENTS = {"depth": 2, "leaf": "weibull", "l2": 0.1, "shrinkage": 0.01, "routing_l2": 0.01, "n_restarts": 1}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A table of 700 rows in several row groups."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((700, 4))
    time = rng.exponential(np.exp(-x[:, 0] * (x[:, 1] > 0))) + 0.01
    frame = pd.DataFrame(x, columns=list("abcd")).assign(t=time, died=rng.random(700) < 0.7)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.to_parquet(path, row_group_size=200)
    return path


@pytest.fixture(scope="module")
def job(rows, tmp_path_factory):
    """The job's folder of results and how it ended."""
    folder = tmp_path_factory.mktemp("job")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, *launch, str(SCRIPT), str(rows), str(folder)]
    ended = subprocess.run(command, env=environment, cwd=SCRIPT.parents[3], capture_output=True, text=True, timeout=300)
    return folder, ended


def one_process(rows, **options):
    return fit_stream(SoftSurvivalTree(**ARGUMENTS), Table(rows, "t", "died", chunk_rows=64), max_sweeps=4, **options)


def test_two_processes_equal_one(rows, job):
    folder, ended = job
    assert (folder / "model1" / "model.safetensors").exists(), ended.stderr
    alone = one_process(rows)
    for rank in (0, 1):
        model = load_model(folder / f"model{rank}")
        assert model.report_.details["processes"] == 2
        assert model.report_.trace == pytest.approx(alone.report_.trace, rel=1e-12)
        torch.testing.assert_close(model.tree_.leaves, alone.tree_.leaves, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(model.tree_.routing, alone.tree_.routing, rtol=1e-8, atol=1e-10)
        assert model.leaf_table_.n.tolist() == alone.leaf_table_.n.tolist()
        assert model.censoring_.values.tolist() == alone.censoring_.values.tolist()


def test_a_killed_process_ends_the_job_with_a_sentence(job):
    _, ended = job
    assert ended.returncode != 0
    assert "process 0 of 2 lost the others" in ended.stderr
    assert "goes on from the last checkpoint" in ended.stderr


def test_the_checkpoint_of_the_killed_job_loses_one_sweep_at_most(rows, job):
    folder, _ = job
    resumed = one_process(rows, checkpoint=folder / "run.ckpt")
    alone = one_process(rows)
    assert resumed.report_.trace == pytest.approx(alone.report_.trace, rel=1e-12)
    torch.testing.assert_close(resumed.tree_.leaves, alone.tree_.leaves, rtol=1e-8, atol=1e-10)
    # the single leaf, the starts and one sweep were not repeated
    assert resumed.report_.details["passes"] <= alone.report_.details["passes"]


def test_a_job_of_one_needs_no_network(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    assert not is_launched()
    assert is_first()
    with join() as ranks:
        assert (ranks.rank, ranks.size, ranks.first) == (0, 1, True)
        assert ranks.gather(3) == [3]
        assert ranks.share("x") == "x"
        part = RunningSum(torch.zeros(2))
        part.add(torch.ones(2))
        assert ranks.total(part).tolist() == [1.0, 1.0]


def test_a_broken_exchange_is_one_sentence():
    def fails():
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1234\nmore")

    with pytest.raises(SoftsurvError, match=r"process 2 of 4 lost the others.*same command"):
        Ranks(2, 4)._together(fails)


COMMAND = ["--time", "t", "--event-column", "died", "--memory", "10KB", "--depth", "1", "--leaf", "weibull"]
PENALTIES = ["--l2", "1", "--shrinkage", "1", "--routing-l2", "0.1", "--restarts", "1", "--sweeps", "2"]


def test_the_command_fits_a_table_by_chunks_and_repeats_it(rows, tmp_path, capsys):
    assert main(["fit", str(rows), *COMMAND, *PENALTIES, "--out", str(tmp_path / "one")]) == 0
    assert "rows.parquet: 700 rows" in capsys.readouterr().out
    assert main(["fit", "--config", str(tmp_path / "one"), "--out", str(tmp_path / "again")]) == 0
    one, again = (load_model(tmp_path / name) for name in ("one", "again"))
    assert one.depth_ == 1
    assert torch.equal(one.tree_.leaves, again.tree_.leaves)
    assert torch.equal(one.tree_.routing, again.tree_.routing)
    record = json.loads((tmp_path / "one" / "run.json").read_text())
    assert record["data"]["fingerprint"] == one.report_.details["fingerprint"]
    assert record["config"]["memory"] == "10KB"


def test_predictions_by_chunks_equal_those_at_once(rows, tmp_path):
    assert main(["fit", str(rows), *COMMAND, *PENALTIES, "--out", str(tmp_path / "model")]) == 0
    predict = ["predict", str(tmp_path / "model"), str(rows), "--times", "0.5", "--id", "a", "--out"]
    assert main([*predict, str(tmp_path / "whole.csv")]) == 0
    assert main([*predict, str(tmp_path / "parts.csv"), "--chunk-rows", "64"]) == 0
    whole, parts = (pd.read_csv(tmp_path / name) for name in ("whole.csv", "parts.csv"))
    assert len(parts) == 700
    pd.testing.assert_frame_equal(parts, whole)


def test_the_command_on_two_processes_gives_the_model_of_one(rows, tmp_path):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    arguments = ["fit", str(rows), *COMMAND, *PENALTIES]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    assert main([*arguments, "--out", str(tmp_path / "one")]) == 0
    command = [sys.executable, *launch, "-m", "softsurv.cli", *arguments, "--out", str(tmp_path / "two")]
    subprocess.run(command, env=environment, check=True)
    one, two = (load_model(tmp_path / name) for name in ("one", "two"))
    assert two.report_.details["processes"] == 2
    assert two.report_.details["fingerprint"] == one.report_.details["fingerprint"]
    torch.testing.assert_close(two.tree_.leaves, one.tree_.leaves, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(two.tree_.routing, one.tree_.routing, rtol=1e-8, atol=1e-10)


def test_options_that_do_not_go_together_are_refused(rows, capsys, monkeypatch):
    assert main(["fit", str(rows), *COMMAND, *PENALTIES, "--memory", "plenty"]) == 1
    assert "memory must be bytes" in capsys.readouterr().err
    for options, said in (
        ([*COMMAND, "--test-size", "0.2"], "--test-size is no option with --memory"),
        (["--time", "t", "--event", "died", "--checkpoint", "c"], "--checkpoint is no option without --memory"),
    ):
        with pytest.raises(SystemExit):
            main(["fit", str(rows), *options])
        assert said in capsys.readouterr().err
    assert main(["fit", str(rows), *COMMAND, "--model", "optimal"]) == 1
    assert "--memory streams rows to soft trees" in capsys.readouterr().err
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["fit", str(rows), "--time", "t", "--event", "died"]) == 1
    assert "--memory must be given under torchrun" in capsys.readouterr().err
