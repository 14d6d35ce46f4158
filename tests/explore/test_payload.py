"""A tree as JSON values: who repeats its arithmetic on them gets the tree's own answers."""

import json

import numpy as np
import pytest
import torch

from softsurv.data.readers import survival_data
from softsurv.explore.payload import explorer_payload, fills_of, leaf_arithmetic, nodes_of, rows_of, sources_of
from softsurv.explore.report_tree import leaf_sections
from softsurv.explore.view import TreeView, tree_view


@pytest.fixture(scope="module")
def payloads(mixed, uneven):
    return {"mixed": (mixed, explorer_payload(mixed.tree, mixed.data)),
            "uneven": (uneven, explorer_payload(uneven.tree, uneven.data))}  # fmt: skip


@pytest.mark.parametrize("which", ["mixed", "uneven"])
def test_everything_is_json_and_counts_are_right(payloads, which):
    subject, payload = payloads[which]
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    leaf = subject.tree.apply(subject.data)
    assert [one["n"] for one in payload["leaves"]] == np.bincount(leaf, minlength=len(payload["leaves"])).tolist()
    assert sum(one["events"] for one in payload["leaves"]) == subject.data.n_events
    assert len(payload["rows"]) == subject.data.n
    assert payload["causes"] is None


@pytest.mark.parametrize("which", ["mixed", "uneven"])
def test_nodes_lead_down_to_every_leaf_once(payloads, which):
    subject, payload = payloads[which]
    nodes = nodes_of(tree_view(subject.tree))
    assert payload["nodes"] == nodes
    for k, node in enumerate(nodes):
        sides = [side for side in (node["left"], node["right"]) if side >= 0]
        assert len(sides) == (0 if node["leaf"] >= 0 else 2)
        assert all(nodes[side]["parent"] == k and nodes[side]["level"] == node["level"] + 1 for side in sides)
        assert (node["split"] is None) == (node["leaf"] >= 0)
    assert sorted(node["leaf"] for node in nodes if node["leaf"] >= 0) == tree_view(subject.tree).leaves


def test_weights_and_baseline_give_the_curves_of_a_soft_tree(mixed):
    """Log odds, as in log-logistic leaves, or log H: the link of the tree's family."""
    tree, times = mixed.tree, np.array([0.0, 100.0, 900.0])
    leaves = leaf_arithmetic(tree, tree_view(tree), times)
    encoded = np.asarray(tree.preprocessor_.transform(mixed.data.X), dtype=float)[:30]
    link, own = tree.tree_.family.link, tree.apply(mixed.data.X)[:30]
    expected = tree.predict_survival_function(mixed.data.X.iloc[:30], times)
    for row, leaf, curve in zip(encoded, own, expected, strict=True):
        weights, baseline = np.array(leaves[leaf]["weights"]), leaves[leaf]["baseline"]
        assert baseline[0] is None  # at time 0
        z = weights[0] + weights[1:] @ row + np.array(baseline[1:])
        hazard = link.cumulative_hazard(torch.tensor(z))[0].numpy()
        np.testing.assert_allclose(np.exp(-hazard), curve[1:], atol=1e-9)


def test_leaves_of_an_optimal_tree_hold_their_survival(uneven):
    times = np.array([0.0, 300.0, 1200.0])
    leaves = leaf_arithmetic(uneven.tree, tree_view(uneven.tree), times)
    own = uneven.tree.apply(uneven.data)
    expected = uneven.tree.predict_survival_function(uneven.data.X, times)
    np.testing.assert_allclose([leaves[leaf]["survival"] for leaf in own], expected)


def test_features_have_a_range_or_levels(uneven, mixed):
    for subject in (uneven, mixed):
        view, X = tree_view(subject.tree), subject.data.X
        found = {one["name"]: one for one in sources_of(view, X)}
        assert found["grade"]["levels"] == ["I", "II", "III"]
        assert found["age"]["low"] <= X["age"].min()
        assert found["age"]["high"] >= X["age"].max()
        assert found["age"]["step"] == pytest.approx((found["age"]["high"] - found["age"]["low"]) / 200)
        narrow = {one["name"]: one for one in sources_of(view, X.iloc[[0]])}
        cuts = [cut for node in view.branches for cut in node.split.boundaries(view.columns, view.encode(X)[0], "age")]
        if subject is uneven:  # both answers to a question occur
            assert all(narrow["age"]["low"] < cut < narrow["age"]["high"] for cut in cuts)


def test_a_feature_without_a_known_value_has_a_range_all_the_same(uneven):
    tree, data = uneven.tree, uneven.data
    asked = {node.split.source.name for node in tree_view(tree).branches}
    numbers = [s["name"] for s in sources_of(tree_view(tree), data.X) if s["levels"] is None]
    unknown = next(name for name in numbers if name not in asked)
    rows = data.with_features(data.X.assign(**{unknown: np.nan}))
    payload = explorer_payload(tree, rows)
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    (source,) = (source for source in payload["sources"] if source["name"] == unknown)
    assert source["low"] < source["high"]
    assert {row[unknown] for row in payload["rows"]} == {None}


def test_rows_are_numbers_text_and_none(uneven):
    X = uneven.data.X
    rows = rows_of(X, sources_of(tree_view(uneven.tree), X))
    for k in (0, int(np.flatnonzero(X["marker"].isna())[0])):
        marker = X["marker"].iloc[k]
        assert rows[k]["age"] == X["age"].iloc[k]
        assert rows[k]["grade"] == X["grade"].iloc[k]
        assert rows[k]["marker"] == (None if np.isnan(marker) else marker)


def test_fills_are_those_of_training(mixed):
    fills = fills_of(tree_view(mixed.tree))
    assert fills["age"] == pytest.approx(mixed.data.X["age"].mean())
    assert fills["grade"] == mixed.data.X["grade"].mode()[0]


def test_many_rows_are_thinned_and_counted(mixed):
    payload = explorer_payload(mixed.tree, mixed.data, max_rows=50)
    assert len(payload["rows"]) == len(payload["labels"]) == 50
    assert sum(leaf["n"] for leaf in payload["leaves"]) == mixed.data.n
    assert payload["labels"][0] == "0"
    assert payload["labels"][-1] == str(mixed.data.n - 1)


def test_a_page_of_many_features_holds_fewer_rows_unless_told(mixed, monkeypatch):
    """A page of 5,000 features and 1,000 rows had 112 MB, which no browser shows."""
    features = mixed.data.X.shape[1]
    monkeypatch.setitem(explorer_payload.__globals__, "USUAL_CELLS", 30 * features + 1)
    payload = explorer_payload(mixed.tree, mixed.data)
    assert len(payload["rows"]) == len(payload["outcome"]) == 30
    assert sum(leaf["n"] for leaf in payload["leaves"]) == mixed.data.n
    assert len(explorer_payload(mixed.tree, mixed.data, max_rows=80)["rows"]) == 80
    monkeypatch.setitem(explorer_payload.__globals__, "USUAL_CELLS", 1)
    assert len(explorer_payload(mixed.tree, mixed.data)["rows"]) == 1


def test_rows_are_called_by_the_users_index_though_some_weigh_nothing(mixed):
    weight = np.ones(mixed.data.n)
    weight[:7] = 0.0
    named = mixed.data.X.set_axis([f"patient {k}" for k in range(mixed.data.n)])
    rows = survival_data(named, (mixed.data.event, mixed.data.time), weight=weight).that_count()
    assert explorer_payload(mixed.tree, rows)["labels"][0] == "patient 7"
    assert explorer_payload(mixed.tree, mixed.data.take(weight > 0))["labels"][0] == "7"


def test_rows_are_encoded_once_whatever_the_number_of_leaves(mixed, monkeypatch):
    """They were encoded again for every leaf: most of the memory of a large table."""
    calls, encode = [], TreeView.encode
    monkeypatch.setattr(TreeView, "encode", lambda self, X: calls.append(len(X)) or encode(self, X))
    explorer_payload(mixed.tree, mixed.data)
    assert calls == [mixed.data.n]
    leaf_sections(mixed.tree, mixed.data, None)
    assert calls == [mixed.data.n] * 2
