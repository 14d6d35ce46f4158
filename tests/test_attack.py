"""The attack on a small share of its cases: every one ends in a right result or in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARES = {
    "models": 20,
    "records": 10,
    "tables": 20,
    "names": 10,
    "kills": 10,
    "readers": 5,
    "disks": 5,
    "changes": 5,
    "interrupts": 1,
    "caches": 1,
}
"""A hundredth of the cases of the groups that need neither a browser nor a server nor other rights."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the attack forks its writers")
def test_a_share_of_the_attack_finds_nothing(tmp_path):
    command = [sys.executable, str(ROOT / "scripts" / "attack.py"), "--share", "0.01", "--seed", "7"]
    options = ["--state", str(tmp_path / "state.json"), "--table", str(tmp_path / "attack.md"), "--groups", *SHARES]
    here = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, *options], cwd=tmp_path, env=here, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    groups = json.loads((tmp_path / "state.json").read_text())["groups"]
    assert {name: part["done"] for name, part in groups.items()} == SHARES
    assert "| mutated and forged model files | 20 | 0 | 0 |" in (tmp_path / "attack.md").read_text()
