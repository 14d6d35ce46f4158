"""Arguments by other names, and names that no estimator has."""

import inspect

import pytest
from sklearn.base import clone

from softsurv import OptimalFairSurvivalTree, OptimalModelTree, OptimalSurvivalTree, SoftSurvivalTree
from softsurv.errors import SoftsurvWarning

PAIRS = [(SoftSurvivalTree, "max_depth", "depth"), (OptimalSurvivalTree, "depth", "max_depth")]


@pytest.mark.parametrize(("kind", "other", "own"), PAIRS)
def test_the_name_of_the_other_kind_is_understood_with_a_hint(kind, other, own):
    with pytest.warns(SoftsurvWarning, match=f"{kind.__name__} calls {other} {own}") as told:
        model = kind(**{other: 2})
    assert told[0].filename == __file__
    assert model.get_params()[own] == 2
    assert other not in inspect.signature(kind).parameters
    assert clone(model).get_params()[own] == 2
    with pytest.warns(SoftsurvWarning, match=own):
        assert kind().set_params(**{other: 1}).get_params()[own] == 1


@pytest.mark.parametrize(("kind", "other", "own"), PAIRS)
def test_both_names_at_once_are_refused(kind, other, own):
    with pytest.warns(SoftsurvWarning), pytest.raises(TypeError, match=f"got '{own}' twice"):
        kind(**{other: 2, own: 3})


@pytest.mark.parametrize(
    ("kind", "wrong", "near"),
    [(SoftSurvivalTree, "shrinkge", "shrinkage"), (SoftSurvivalTree, "max_dept", "max_depth")],
)
def test_a_misspelt_name_is_told_by_the_class_that_was_called(kind, wrong, near):
    with pytest.raises(TypeError, match=f"{kind.__name__} has no argument '{wrong}'; did you mean '{near}'"):
        kind(**{wrong: 1})


def test_the_optimal_tree_speaks_for_itself():
    with pytest.raises(TypeError, match=r"^OptimalSurvivalTree has no argument 'max_dept'; did you mean 'max_depth'"):
        OptimalSurvivalTree(max_dept=2)


@pytest.mark.parametrize(
    ("tree", "name", "said"),
    [
        (OptimalSurvivalTree(), "upper", "SoftSurvivalTree takes events in intervals"),
        (OptimalSurvivalTree(), "group", "OptimalFairSurvivalTree and SoftSurvivalTree take groups"),
        (OptimalSurvivalTree(), "weight", "did you mean 'sample_weight'?"),
        (OptimalModelTree(), "group", "OptimalFairSurvivalTree and SoftSurvivalTree take groups"),
        (OptimalModelTree(), "weight", "did you mean 'sample_weight'?"),
        (OptimalFairSurvivalTree(1.0), "cause", "OptimalSurvivalTree takes causes, and several rows of a subject"),
        (OptimalFairSurvivalTree(1.0), "start", "OptimalSurvivalTree takes causes, and several rows of a subject"),
        (
            OptimalFairSurvivalTree(1.0),
            "upper",
            "SoftSurvivalTree takes events in intervals, and fairness between groups",
        ),
        (OptimalFairSurvivalTree(1.0), "groups", "did you mean 'group'?"),
    ],
)
def test_a_fit_says_who_takes_an_argument_that_it_does_not_have(tree, name, said):
    with pytest.raises(TypeError, match="has no argument") as caught:
        tree.fit([[1.0], [2.0]], ([True, True], [1.0, 2.0]), **{name: [1, 2]})
    assert str(caught.value) == f"{type(tree).__name__}.fit has no argument {name!r}; {said}"
