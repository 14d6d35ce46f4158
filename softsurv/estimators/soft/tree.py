"""SoftSurvivalTree: a soft survival tree as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from softsurv.data.in_time import look_before_fitting
from softsurv.data.preprocess import Preprocessor
from softsurv.data.survival_data import SurvivalData
from softsurv.errors import DataWarning, warn
from softsurv.estimators.shared.arguments import understands
from softsurv.estimators.shared.one_fit import one_fit_at_a_time
from softsurv.estimators.soft.features import encoded_names
from softsurv.estimators.soft.fitted import FittedSoftEstimator
from softsurv.stopping import StopSignal

if TYPE_CHECKING:
    from softsurv.estimators.soft.training import Made
    from softsurv.hazards.base import LeafFamily


@understands(max_depth="depth")
@dataclass(eq=False, repr=False)
class SoftSurvivalTree(FittedSoftEstimator):
    """Survival tree with rules of few features and a smooth survival model in every leaf.

    A branch node asks for a score of at most three features in the data's own units, ``age + 2.5 nodes > 60``. A row
    goes left with a probability that is a logistic function of that score. A prediction follows the more probable
    branch to one leaf, whose survival model still varies with x. The printed rules are the model. Leaf family, size,
    rules and penalties are chosen by inner cross-validation (see ``selection_``). With ``max_terms=None`` the splits
    weigh all features (paper `sst`).

    Parameters
    ----------
    depth : int, optional
        0 (a single leaf) to 3, or to 10 for dense splits. By default chosen from 0 to 3, and 4 where larger trees are
        clearly better.
    leaf : str or LeafFamily
        Survival model of the leaves: see ``softsurv.hazards.family_names()``. "auto": chosen from log-logistic,
        Weibull, log-normal and both splines. Log-logistic is kept unless another one is clearly better, in a single
        leaf or in those of the tree; with competing causes Weibull is, for each cause. Dense splits, and ``depth=0``
        with ``l2`` given, one kind of event and no more encoded columns than rows, take log-logistic without a choice.
    max_terms : int, None or "auto"
        Most features in a split; 1 is an axis-parallel tree. None: dense splits, which weigh all features. "auto":
        3, but dense splits where an argument is given that only dense trees have (``solver="nodec"``, ``init``,
        ``routing_l2``, ``fairness``, ``l1``, ``max_iter``, ``preset``, a depth above 3).
    prefer : {"tree", "simplest"}
        Which one to take where a tree of rules and a single leaf predict equally well, within one standard error: the
        tree, which says more, or the single leaf. Dense splits give way to the single leaf then.
    n_knots : int
        Internal knots of the spline leaves, 0 to 99.
    solver : {"lbfgs", "nodec"}
        All parameters jointly, or the paper's node-based decomposition.
    n_restarts : int
        Starts, trained together, at most 10,000; the one with the lowest training objective is kept.
    init : {"auto", "random", "kmeans", "logrank", "exact"} or hard tree
        "auto": a greedy log-rank tree and random starts. "exact": random starts and the tree that `OptimalModelTree`
        finds at that depth with no condition but ten events in a leaf; if the depth is open, it is chosen with the
        starts of "auto". An `OptimalSurvivalTree` or `HardTree`: its splits are the only start, and its depth is the
        default of ``depth``.
    l2 : float, optional
        Penalty on the slopes of the leaves: a larger one pulls the effects of the features towards none. As the three
        that follow, it is divided by the number of rows. None: chosen by inner cross-validation, among larger ones
        where encoded columns outnumber rows.
    shrinkage : float, optional
        Penalty on each leaf's own level and shape: a larger one makes the leaves more alike. For dense splits it is on
        the distance of a leaf from the single-leaf fit. None: chosen by inner cross-validation.
    slope_shrinkage : float, optional
        Penalty on each leaf's own slopes, for rules: a larger one makes effects more alike across leaves. None: chosen
        by inner cross-validation.
    routing_l2 : float, optional
        Penalty on the routing weights of dense splits. None: chosen by inner cross-validation.
    fairness : float
        Weight of the mean squared distance between the predicted survival curves of the groups (``group`` in ``fit``);
        the single leaf that leaves shrink to and the choice of penalties take it into account.
    l1 : float
        Group lasso on the features, so that the tree uses few of them; divided by the square root of the number of
        rows.
    max_iter : int, optional
        Most iterations of L-BFGS, or macro iterations of NODEC-DR. None: as many as the solver has by default.
    preset : {None, "paper"}
        "paper": NODEC-DR with the published settings in place of the arguments above; needs ``depth``. Of its 20
        starts the one with the lowest training objective predicts; the paper reports means over the starts
        (`evaluate_starts`).
    time_limit : float, optional
        Seconds after which the best tree so far is returned.
    device : str
        "auto" takes CUDA where there is a device and the table is large enough that it is faster there: rows times
        starts (of a tree of rules the rows alone) above 7,000 for each core of the processor. Or "cpu", "cuda",
        "cuda:1".
    dtype : {"float64", "float32"}
        Precision of the arithmetic.
    random_state : int, optional
        Seed of folds and starts; 0 by default, so that a fit can be repeated.
    preprocess : bool
        Impute, one-hot encode and scale inside; False takes numeric, complete features as they are, in their order, on
        which the starts of dense trees then depend.
    progress : bool
        Show a progress bar: candidates tried of all candidates; for dense splits also rounds taken of the most rounds.
    cause_weights : mapping, int or str, optional
        With competing causes: the weight of each in the splits and in their choice, by name or code; a cause that is
        not named has the weight 0. Or the one cause of interest. By default all weigh the same. The leaves hold every
        cause in any case.
    choice_rows : int, None or "auto"
        Most rows on which settings are compared, at least 1,000. Of a table that is larger by more than a quarter a
        sample of about so many is taken, with the share of events of the table, or a larger one where events are rarer
        than one in five; the tree of the best setting is trained on all rows. "auto": 20,000, or 600,000 over the
        number of encoded features, but at least 5,000. None: settings are compared on all rows.

    Attributes
    ----------
    tree_ : SoftTree
        The fitted torch module, a stack of one.
    cause_trees_ : tuple of SoftTree
        Where events have causes, one module for each cause: the routing is that of ``tree_``, the leaves hold the
        hazard of the cause. ``tree_`` is the first of them.
    cause_names_ : tuple of str
        Names of the causes; empty where there is one kind of event.
    report_ : FitReport
        Status, objective, trace and seconds. ``details`` holds, for a tree of rules, the reason of the choice and the
        splits that were taken out because they changed no prediction. For a dense tree it holds the objective of every
        start and ``objective_by``, how the objective went over the rows: "compiled loops", "operators" or "fused
        operator". ``compared`` tells of a sample on which settings were compared: its rows, and of how many.
    candidate_ : Candidate
        Depth, family and penalties used.
    selection_ : DataFrame
        Settings that inner cross-validation tried, best first; empty where nothing was left to choose.
    leaf_table_ : LeafTable
        Rows, events and Kaplan-Meier curve of each leaf, with weights, late entries and intervals.
    time_floor_ : float
        The time that stands for time 0 in training and in scores: half the smallest positive training time.
    preprocessor_ : Preprocessor
        How the raw features became numbers; None with ``preprocess=False``.

    References
    ----------
    Consolo, Amaldi & Carrizosa (2026), Soft decision trees for survival analysis, eq. 5. Default design: shrinkage
    towards the single leaf and validated depth, which the paper does not have.

    Examples
    --------
    >>> from softsurv import SoftSurvivalTree, load_dataset
    >>> train, test = load_dataset("gbsg2").split(seed=0)
    >>> tree = SoftSurvivalTree(depth=1, leaf="weibull", l2=0.3, shrinkage=10.0).fit(train.X, train.y)
    >>> tree.predict_survival_function(test.X, times=[365, 730]).shape
    (137, 2)
    """

    depth: int | None = None
    leaf: str | LeafFamily = "auto"
    _: KW_ONLY
    max_terms: int | str | None = "auto"
    prefer: str = "tree"
    n_knots: int = 2
    solver: str = "lbfgs"
    n_restarts: int = 5
    init: Any = "auto"
    l2: float | None = None
    shrinkage: float | None = None
    slope_shrinkage: float | None = None
    routing_l2: float | None = None
    fairness: float = 0.0
    l1: float = 0.0
    max_iter: int | None = None
    preset: str | None = None
    time_limit: float | None = None
    device: str = "auto"
    dtype: str = "float64"
    random_state: int | None = None
    preprocess: bool = True
    progress: bool = False
    cause_weights: Any = None
    choice_rows: int | str | None = "auto"

    # -- fitting -------------------------------------------------------------------------------------------------
    @one_fit_at_a_time
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: Any = None,
        group: Any = None,
        entry: Any = None,
        upper: Any = None,
        time: Any = None,
        event: Any = None,
        cause: Any = None,
        cause_names: Sequence[str] = (),
        start: Any = None,
        stop: Any = None,
        id: Any = None,
        recurrent: bool = False,
    ) -> SoftSurvivalTree:
        """Fit the tree.

        Parameters
        ----------
        X : DataFrame, array, path or SurvivalData
            Features (n, p); may hold categories and missing values.
        y : structured array, or (event, time), optional
            Or give ``time`` and ``event`` as column names. Tools of scikit-learn cut ``y`` into rows: give them
            ``survival_data(X, (event, time)).y``, an array.
        sample_weight : (n,), optional
            How much each row counts, >= 0.
        group : (n,), optional
            Sensitive group of each row, for ``fairness``; never a feature.
        entry : (n,), optional
            Time from which a row is under observation (late entry, left truncation).
        upper : (n,), optional
            Upper end of an interval that holds the event (interval censoring; see `SurvivalData`).
        cause : (n,), optional
            Competing risks, in place of ``event``: 0 for censored rows, else the code or label of what happened. Each
            leaf then holds one hazard for each cause, under the same rules.
        cause_names : sequence of str
            Names of the codes 1..K.
        start, stop, id : (n,), optional
            Covariates that change: several rows (start, stop] for each ``id``. Folds keep subjects whole.
        recurrent : bool
            Whether events of a subject may happen again: leaves hold the rate of a counting process (Andersen and Gill
            1982), whose integral is the mean number of events (`predict_mean_count`).

        Raises
        ------
        InvalidSurvivalDataError
            If the rows cannot be read, or a tree cannot be trained on them.
        InvalidParameterError
            If an argument is not what it must be, or does not go with another one.

        Notes
        -----
        The log-likelihood of a row is a sum over causes; for each cause the events of the others count as censored. For
        a row (start, stop] it is conditional on no event until ``start``. So cutting a subject's history into more rows
        does not change the likelihood.
        """
        # these load torch: here, so that the class can be named without it, and before the time limit starts
        from softsurv.estimators.soft.devices import check_range_of_times, choose_device
        from softsurv.estimators.soft.hard_start import start_tree
        from softsurv.estimators.soft.parameters import SoftParameters
        from softsurv.estimators.soft.training import Order, dense_tree, rule_tree
        from softsurv.estimators.soft.warm_up import ready, ready_for_causes
        from softsurv.soft.parallel import Machine, one_core_each
        from softsurv.sparse.row_space import is_wide

        parameters = SoftParameters(**self.get_params(deep=False))
        ready(parameters)
        budget = StopSignal(self.time_limit)
        columns = {"weight": sample_weight, "group": group, "entry": entry, "upper": upper, "time": time}
        columns |= {"cause": cause, "cause_names": cause_names, "start": start, "stop": stop, "id": id}
        columns["recurrent"] = recurrent
        with budget.reading():
            raw, encoder, data = self._encoded_rows(X, y, event=event, **columns)
        check_range_of_times(data.time, parameters.torch_dtype)
        look_before_fitting(*raw.X.shape, budget)
        ready_for_causes(parameters, data.n_causes, budget)
        start = None if isinstance(self.init, str) else start_tree(self.init, raw)
        with budget, one_core_each() as workers:
            nothing_open = self.depth == 0 and self.l2 is not None  # one regression, with nothing to choose or split
            in_row_space = is_wide(data) and int(data.failed.sum()) > 1  # folds need two events
            rules = parameters.has_rules and (raw.cause is not None or not nothing_open or in_row_space)
            # rules are sought on the processor, for which a device waits
            device = choose_device(self.device, data.n * (1 if rules else parameters.n_starts), workers)
            machine = Machine(device, parameters.torch_dtype, budget, workers)
            encoded = encoded_names(encoder, self.n_features_in_, getattr(self, "feature_names_in_", None))
            make = rule_tree if rules else dense_tree
            made = make(Order(parameters, data, encoder, tuple(encoded), start, machine))
        return self._take_over(raw, encoder, data, made)

    def _encoded_rows(self, X: Any, y: Any, **columns: Any) -> tuple[SurvivalData, Preprocessor | None, SurvivalData]:
        """The training rows in canonical order, their encoder, and the encoded rows."""
        raw = self._read(X, y, **columns)
        rows, names = self._in_order(raw)
        raw = raw.take(rows)
        return raw, *encoded_rows(raw, self.preprocess, names)

    def _take_over(
        self, raw: SurvivalData, encoder: Preprocessor | None, data: SurvivalData, made: Made
    ) -> SoftSurvivalTree:
        """Take over the trained tree, with its tables over the training rows."""
        from softsurv.estimators.soft.training import fitted_tree

        self._keep_starts(made.starts)
        self._adopt(fitted_tree(raw, encoder, data, made, self.horizon_))
        return self


def encoded_rows(raw: SurvivalData, preprocess: bool, names: list[str]) -> tuple[Preprocessor | None, SurvivalData]:
    """The encoder, None without one, and the encoded rows; encoded columns are in the order of ``names``."""
    if not preprocess:
        return None, raw
    block = raw.number_block()
    encoder = Preprocessor().fit_checked(raw.X, named=True, order=names, block=block)
    encoded = encoder.transform_checked(raw.X, block)
    if encoded.shape[1] == 0:
        what = "every feature is constant, so all rows get one curve; check the columns of X"
        warn(what, DataWarning)
    return encoder, raw.with_encoded(encoded)
