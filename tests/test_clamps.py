"""Where exponents end: one place for torch and for compiled loops."""

import subprocess
import sys

import torch

from softsurv.clamps import EXP_LIMIT, LOG_SHAPE_LIMIT
from softsurv.hazards import get_family
from softsurv.numerics import safe_exp


def test_the_exponential_goes_on_as_its_tangent():
    at = torch.tensor([EXP_LIMIT, EXP_LIMIT + 1.0], dtype=torch.float64)
    low, high = safe_exp(at)
    assert low == at[:1].exp()
    assert high == 2 * low


def test_shapes_end_where_a_slope_is_a_step():
    family = get_family("weibull")
    time = torch.rand(5, dtype=torch.float64) + 0.5
    features = family.time_features(time, family.fit_time_scale(time, torch.ones(5) > 0))
    ends = [family.baseline(torch.full((1, 1), s * LOG_SHAPE_LIMIT).double(), features) for s in (1.0, 1.5)]
    for end, beyond in zip(*ends, strict=True):
        torch.testing.assert_close(end, beyond)


def test_loops_are_read_without_torch():
    """The second process that compiles reads them; torch would take it a second."""
    code = (
        "import sys, softsurv.estimators.soft.warm_up as w, softsurv.exact.helper\n"
        "print(len(w.RULES) > 9, 'torch' in sys.modules, 'pandas' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False", "False"]
