"""The public estimators, and the module of each: the one table of their names."""

HOME = {
    "SoftSurvivalTree": "softsurv.estimators.soft.tree",
    "OptimalSurvivalTree": "softsurv.estimators.optimal.tree",
    "OptimalModelTree": "softsurv.estimators.model_tree",
    "OptimalClassificationTree": "softsurv.estimators.separable.classification",
    "OptimalCostSensitiveTree": "softsurv.estimators.separable.cost_sensitive",
    "OptimalPolicyTree": "softsurv.estimators.separable.policy",
    "OptimalRegressionTree": "softsurv.estimators.separable.regression",
    "OptimalFairClassificationTree": "softsurv.estimators.separable.fair",
    "OptimalFairSurvivalTree": "softsurv.estimators.survival.fair",
    "OptimalCapacityPolicyTree": "softsurv.estimators.separable.capacity_policy",
    "OptimalSurvivalPolicyTree": "softsurv.estimators.survival.policy",
}
