"""Codes by which compiled loops know how a cumulative hazard comes from its linear predictor z."""

HAZARDS, ODDS, PROBIT = 0, 1, 2

CODES = {"proportional_hazards": HAZARDS, "proportional_odds": ODDS, "probit": PROBIT}
"""By the name of the link: H is exp(z), log(1 + exp(z)), or -log Phi(-z)."""
