"""How a fit ended, as a value: through JSON and back, and the gap."""

import json
import math

import pytest

from softsurv.results import FitReport, Status

FULL = FitReport(Status.TIME_LIMIT, 12.5, 10.0, 3.25, (14.0, 12.5), {"sweeps": 4, "names": ["a", "b"]})


@pytest.mark.parametrize("report", [FULL, FitReport(Status.CONVERGED, 1.0), FitReport(Status.OPTIMAL, -3.0, -3.0)])
def test_a_report_goes_through_json_and_back(report):
    text = json.dumps(report.to_dict(), allow_nan=False)
    assert FitReport.from_dict(json.loads(text)) == report


def test_every_status_is_its_word():
    for status in Status:
        assert Status(str(status)) is status
        assert FitReport(status, 0.0).to_dict()["status"] == status.name.lower()
    with pytest.raises(ValueError, match="finished"):
        FitReport.from_dict(FULL.to_dict() | {"status": "finished"})


def test_a_missing_bound_is_no_number_in_json_and_an_infinite_gap():
    report = FitReport(Status.CONVERGED, 1.0)
    assert report.to_dict()["lower_bound"] is None
    assert report.gap == math.inf


def test_the_gap_is_never_below_zero():
    assert FULL.gap == 2.5
    assert FitReport(Status.OPTIMAL, 1.0, 1.0 + 1e-12).gap == 0.0  # a bound may pass the objective by rounding


def test_details_are_the_reports_own():
    one, other = FitReport(Status.OPTIMAL, 0.0), FitReport(Status.OPTIMAL, 0.0)
    one.details["nodes"] = 3
    assert other.details == {}
