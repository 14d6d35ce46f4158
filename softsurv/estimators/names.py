"""The public estimators, and the module of each: the one table of their names."""

HOME = {
    "SoftSurvivalTree": "softsurv.estimators.soft",
    "OptimalSurvivalTree": "softsurv.estimators.optimal",
    "OptimalClassificationTree": "softsurv.estimators.classification",
    "OptimalCostSensitiveTree": "softsurv.estimators.cost_sensitive",
    "OptimalPolicyTree": "softsurv.estimators.policy",
    "OptimalRegressionTree": "softsurv.estimators.regression",
    "OptimalFairClassificationTree": "softsurv.estimators.fair",
    "OptimalFairSurvivalTree": "softsurv.estimators.fair_survival",
    "OptimalCapacityPolicyTree": "softsurv.estimators.capacity_policy",
    "OptimalSurvivalPolicyTree": "softsurv.estimators.survival_policy",
}
