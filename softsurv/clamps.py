"""Where exponents end, for torch and for compiled loops."""

EXP_LIMIT = 30.0
"""Above this the exponential goes on as its tangent: e^30 = 1e13 cumulative hazard is past any data."""

LOG_SHAPE_LIMIT = 20.0
"""Log shapes are clamped to +-20: a slope of 5e8 in standardised log time is a step function already."""
