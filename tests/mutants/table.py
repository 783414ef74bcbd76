"""Mistakes that a test must notice: data leaks, and wrong definitions (:mod:`tests.mutants.definitions`).

A mutant is a text that occurs once in a file, and what to put in its place. ``make test-mutants`` makes one mistake at
a time and asks that the tests beside it fail. Those in this file let something be learned from, scaled by or chosen by
what it is scored on: a new guard against leakage belongs here, with the mistake it is for.
"""

from tests.mutants.definitions import DEFINITIONS
from tests.mutants.mutant import Mutant

BAGS = "paper/tests/test_mil.py::test_no_bag_is_scored_that_was_learned_from_or_selected_by"
MODELS = "paper/tests/test_real.py::test_no_model_learns_from_what_is_scored_nor_from_labels_that_it_must_not_have"
LABELS = "paper/tests/test_real.py::test_no_model_is_given_more_labels_than_it_says"
QUERIES = "paper/tests/test_retrieval.py::test_no_query_is_scored_that_was_learned_from"
UNLABELLED = "paper/tests/test_retrieval.py::test_a_model_without_labels_is_given_none"
CONCEPTS = "paper/tests/test_multimodal.py::test_neither_memory_learns_from_what_is_scored"
ZOO = "paper/tests/test_zoo.py::test_nothing_is_asked_that_was_learned_from"
ZOO_ITEMS = "paper/tests/test_zoo.py::test_no_measured_item_is_asked_that_was_learned_from"
FINAL = "paper/tests/test_tabular.py::test_the_final_models_learn_from_no_test_row"
OWN_LABEL = "tests/estimators/test_training.py::test_no_row_hears_its_own_label"
HELD_OUT = "tests/estimators/test_training.py::test_held_out_rows_are_neither_learned_from_nor_cases"
FOLDS_APART = "tests/similarity/families/test_validation.py::test_folds_judge_by_origins_that_were_not_learned_from"
FOLDS = "tests/similarity/families/test_validation.py::test_folds_know_nothing_of_single_dimensions_from_pairs_left_out"
HALVES = "tests/similarity/families/test_validation.py::test_a_half_is_asked_about_the_other_one"
JUDGED = "tests/learning/test_footprint.py::test_a_fit_is_compared_with_its_start_on_samples_that_it_has_not_seen"
SMOOTHNESS = "tests/learning/test_footprint.py::test_smoothness_is_judged_by_samples_that_were_not_learned_from"
PAIRS = "tests/linkage/test_linking.py::test_pairs_that_judge_are_hidden_from_the_fit_and_each_judges_once"
YOURS = "tests/playground/test_yours.py::test_no_origin_is_learned_from_and_scored"
RIDGE = "tests/linkage/test_alternatives.py::test_a_regression_is_judged_by_stored_rows_that_it_did_not_learn_from"
TRANSFER = (
    "tests/estimators/test_transfer.py::test_no_pair_judges_what_has_learned_from_it_be_it_repeated_or_in_the_library"
)
COMPARED = "tests/comparison/test_comparing.py::test_no_memory_is_judged_by_an_origin_that_it_has_learned_from"
WEIGHED = "tests/similarity/families/moved/test_bent.py::test_a_fold_is_judged_by_weights_that_it_had_no_part_in"
PINNED = "tests/similarity/families/moved/test_rounds.py::test_a_pair_that_is_pinned_is_judged_by_a_map_without_it"
STRANGERS = "tests/memories/test_strangers.py::test_known_strangers_teach_nothing"

MUTANTS = (
    # --- labels that judge ------------------------------------------------------------------------------------
    Mutant(
        "views are weighed by the pairs that they are judged by",
        "src/ahop/similarity/families/moved/bending.py",
        "for other, one in enumerate(self.folds) if other != place for part",
        "for other, one in enumerate(self.folds) for part",
        (WEIGHED,),
    ),
    Mutant(
        "known pairs are judged by maps that they were pinned to",
        "src/ahop/similarity/families/moved/rounds.py",
        "left_out = (part[pairs.origins] == number)",
        "left_out = (part[pairs.origins] == -1)",
        (PINNED,),
    ),
    Mutant(
        "known strangers are learned from",
        "src/ahop/memories/base.py",
        "genuine = known != STRANGER",
        "genuine = known >= STRANGER",
        (STRANGERS,),
    ),
    # --- a comparison -----------------------------------------------------------------------------------------
    Mutant(
        "memories learn from the origins that judge them",
        "src/ahop/comparison/comparing.py",
        "Fold(stored, asked[~judge], labels[~judge], asked[judge])",
        "Fold(stored, asked, labels, asked[judge])",
        (COMPARED,),
    ),
    # --- calibration transfer ---------------------------------------------------------------------------------
    Mutant(
        "a transfer learns from the pairs that judge it",
        "src/ahop/estimators/transfer.py",
        "clone(transfer).fit(rows[learn], wanted[learn])",
        "clone(transfer).fit(rows, wanted)",
        (TRANSFER,),
    ),
    Mutant(
        "a memory has the samples that judge it in its library",
        "src/ahop/estimators/transfer.py",
        "others = others[[row.tobytes() not in paired for row in others]]",
        "others = others[[True for row in others]]",
        (TRANSFER,),
    ),
    Mutant(
        "a sample that was measured twice judges what has learned from it",
        "src/ahop/estimators/transfer.py",
        "folds.split(rows, groups=samples)",
        "folds.split(rows, groups=np.arange(len(rows)))",
        (TRANSFER,),
    ),
    # --- two tables -------------------------------------------------------------------------------------------
    Mutant(
        "a memory is told of the pairs that judge it",
        "src/ahop/linkage/holdout.py",
        "origins.masked_fill(hidden, UNKNOWN)",
        "origins",
        (PAIRS,),
    ),
    Mutant(
        "ridge regression learns from the pairs that judge it",
        "src/ahop/linkage/alternatives.py",
        "by_ridge(stored, incoming, origins, known[learn], judged, together)",
        "by_ridge(stored, incoming, origins, known, judged, together)",
        (RIDGE,),
    ),
    Mutant(
        "what the playground compares learns from the origins that it is scored on",
        "src/ahop/playground/yours.py",
        "first = np.isin(origins.numpy()[known], some[: len(some) // 2])",
        "first = np.arange(len(known)) < len(known) // 2",
        (YOURS,),
    ),
    # --- every memory side by side ----------------------------------------------------------------------------
    Mutant(
        "a memory learns from the queries that it is asked with",
        "paper/src/ahop_paper/zoo.py",
        "build(trial.patterns, trial.train)",
        "build(trial.patterns, trial.train._replace(queries=trial.asked[: len(trial.train.queries)]))",
        (ZOO,),
    ),
    Mutant(
        "measured items are scored that were learned from",
        "paper/src/ahop_paper/zoo_worlds.py",
        "for rows in (data.learn, ~data.learn))",
        "for rows in (data.learn, data.learn))",
        (ZOO_ITEMS,),
    ),
    # --- bags -------------------------------------------------------------------------------------------------
    Mutant(
        "the networks that are scored learn from all bags",
        "paper/src/ahop_paper/mil.py",
        "log_odds(network, bags, labels, train, test) for network in networks",
        "log_odds(network, bags, labels, np.r_[train, test], test) for network in networks",
        (BAGS,),
    ),
    Mutant(
        "scaling and width are selected on all bags",
        "paper/src/ahop_paper/mil.py",
        "best = select(bags, labels, train, model, seed, config)",
        "best = select(bags, labels, np.r_[train, test], model, seed, config)",
        (BAGS,),
    ),
    Mutant(
        "scaling and width are selected on bags that were learned from",
        "paper/src/ahop_paper/mil.py",
        "odds = log_odds(network, bags, labels, train[learn], train[check])",
        "odds = log_odds(network, bags, labels, train, train[check])",
        (BAGS, "paper/tests/test_mil.py::test_selection_sees_the_training_part_alone"),
    ),
    Mutant(
        "a network is fitted to the bags that it is asked about",
        "paper/src/ahop_paper/mil.py",
        "network.fit([bags[index] for index in train], labels[train])",
        "network.fit(bags, labels)",
        (BAGS, "paper/tests/test_mil.py::test_what_is_learned_does_not_depend_on_the_bags_to_judge"),
    ),
    Mutant(
        "bags are scaled by all that are asked about",
        "src/ahop/estimators/bags.py",
        "        some = self._scaled(*self._instances(X, bags, reset=False))\n",
        "        rows, sizes = self._instances(X, bags, reset=False)\n"
        "        self.scaler_ = self._scaler(rows)\n"
        "        some = self._scaled(rows, sizes)\n",
        ("tests/estimators/test_bags.py::test_an_answer_does_not_depend_on_the_bags_asked_beside_it",),
    ),
    Mutant(
        "the checks of Raff and Holt are learned from their test bags",
        "paper/src/ahop_paper/mil.py",
        "network = classifier(model, CANDIDATES[0], seed, Config(settings=CHECK_SETTINGS)).fit(*_arrays(train))",
        "network = classifier(model, CANDIDATES[0], seed, Config(settings=CHECK_SETTINGS)).fit(*_arrays(test))",
        ("paper/tests/test_mil.py::test_a_check_is_passed_on_bags_that_were_not_learned_from",),
    ),
    # --- items measured twice -----------------------------------------------------------------------------------
    Mutant(
        "b-hop is fitted to the scored items",
        "paper/src/ahop_paper/real_models.py",
        "fit(data.queries[data.learn], data.origins[data.learn], seed=seed)",
        "fit(data.queries, data.origins, seed=seed)",
        (MODELS,),
    ),
    Mutant(
        "b-hop without labels is fitted to the scored items",
        "paper/src/ahop_paper/real_models.py",
        "fit(data.queries[data.learn], seed=seed)",
        "fit(data.queries, seed=seed)",
        (MODELS,),
    ),
    Mutant(
        "b-hop without labels is given labels",
        "paper/src/ahop_paper/real_models.py",
        "fit(data.queries[data.learn], seed=seed)",
        "fit(*pairs(data, seed), seed=seed)",
        (MODELS,),
    ),
    Mutant(
        "b-hop of ten labels is given all",
        "paper/src/ahop_paper/real_models.py",
        "fit(*partly_labelled(data, seed, 10), seed=seed)",
        "fit(*pairs(data, seed), seed=seed)",
        (LABELS,),
    ),
    Mutant(
        "pairs are drawn from all items",
        "paper/src/ahop_paper/real_models.py",
        "rows = data.learn.nonzero().squeeze(1)",
        "rows = torch.arange(len(data.learn))",
        (MODELS,),
    ),
    Mutant(
        "a self-taught projection is taught by the scored items",
        "paper/src/ahop_paper/real_models.py",
        "self_taught.projected(data.patterns, data.queries[data.learn], 8",
        "self_taught.projected(data.patterns, data.queries, 8",
        (MODELS,),
    ),
    Mutant(
        "the scored items have a share in hubness",
        "paper/src/ahop_paper/real_models.py",
        'return baselines.csls(baselines.centred(data.patterns, queries, "cosine"), queries)',
        'return baselines.csls(baselines.centred(data.patterns, queries, "cosine"), data.queries)',
        (MODELS,),
    ),
    Mutant(
        "ridge is corrected for hubness by the scored items",
        "paper/src/ahop_paper/real_models.py",
        "return baselines.csls(found, data.queries[data.learn])",
        "return baselines.csls(found, data.queries)",
        (MODELS,),
    ),
    Mutant(
        "a rival of 500 pairs is given all",
        "paper/src/ahop_paper/real_models.py",
        "return baselines.whitening(data.patterns, *pairs(data, seed, count))",
        "return baselines.whitening(data.patterns, *pairs(data, seed))",
        (LABELS,),
    ),
    Mutant(
        "bold asks for a lead over one other alone",
        "paper/src/ahop_paper/spread.py",
        '"ahead": all(',
        '"ahead": any(',
        ("paper/tests/test_spread.py::test_ahead_is_who_can_be_told_from_every_other",),
    ),
    Mutant(
        "items are scored that were learned from",
        "paper/src/ahop_paper/real.py",
        "queries, origins = data.queries[~data.learn], data.origins[~data.learn]",
        "queries, origins = data.queries[data.learn], data.origins[data.learn]",
        ("paper/tests/test_real.py::test_what_is_scored_are_the_items_that_were_not_learned_from",),
    ),
    Mutant(
        "a split goes by queries, so that an item is on both sides",
        "paper/src/ahop_paper/real.py",
        "return data._replace(learn=torch.isin(data.origins, items[order[:count]]))",
        "return data._replace(learn=torch.rand(len(data.learn)) < 0.5)",
        ("paper/tests/test_real.py::test_no_item_is_on_both_sides_of_a_split",),
    ),
    Mutant(
        "a baseline is tuned on items that it learned from",
        "paper/src/ahop_paper/baselines.py",
        "found = make(patterns, queries[~held], origins[~held], *option)",
        "found = make(patterns, queries, origins, *option)",
        ("paper/tests/test_baselines.py::test_a_choice_is_settled_by_origins_that_were_not_learned_from",),
    ),
    # --- worlds that can be drawn -------------------------------------------------------------------------------
    Mutant(
        "memories learn from the queries that are scored",
        "paper/src/ahop_paper/retrieval.py",
        "scored(prepare(model, patterns, train, world, seed), patterns, test)",
        "scored(prepare(model, patterns, test, world, seed), patterns, test)",
        (QUERIES,),
    ),
    Mutant(
        "b-hop without labels is given labels",
        "paper/src/ahop_paper/retrieval.py",
        'return create("b-hop", patterns).fit(train.queries)',
        'return create("b-hop", patterns).fit(*train)',
        (UNLABELLED,),
    ),
    Mutant(
        "memories of other worlds learn from the queries that are scored",
        "paper/src/ahop_paper/worlds.py",
        "made = prepare(model, known, train, corruption, seed)",
        "made = prepare(model, known, test, corruption, seed)",
        (QUERIES,),
    ),
    Mutant(
        "strangers are variants of stored patterns",
        "paper/src/ahop_paper/worlds.py",
        "strangers = corruption.sample(unknown, config.queries).queries",
        "strangers = corruption.sample(known, config.queries).queries",
        ("paper/tests/test_worlds.py::test_strangers_are_variants_of_what_is_not_stored",),
    ),
    Mutant(
        "ablations learn from the queries that are scored",
        "paper/src/ahop_paper/ablations.py",
        'evaluate(fitted(memory, train[network.samples], solver="adam"), test)',
        'evaluate(fitted(memory, test, solver="adam"), test)',
        (QUERIES,),
    ),
    Mutant(
        "the first memory of concepts learns from what is scored",
        "paper/src/ahop_paper/multimodal.py",
        "recall = _taught(first, pictures, sounds, train, seed)",
        "recall = _taught(first, pictures, sounds, test, seed)",
        (CONCEPTS,),
    ),
    Mutant(
        "the second memory of concepts learns from what is scored",
        "paper/src/ahop_paper/multimodal.py",
        "memory = _taught(second, sounds, None, Samples(heard, train.origins), seed)",
        "memory = _taught(second, sounds, None, Samples(asked, test.origins), seed)",
        (CONCEPTS,),
    ),
    Mutant(
        "one bin lets doubt make up for rashness",
        "src/ahop/metrics.py",
        "def calibration_gap(confidence: Tensor, right: Tensor, bins: int = 15)",
        "def calibration_gap(confidence: Tensor, right: Tensor, bins: int = 1)",
        ("tests/test_metrics.py::test_doubt_in_one_place_does_not_make_up_for_rashness_in_another",),
    ),
    Mutant(
        "a memory is judged with one bin",
        "src/ahop/metrics.py",
        "def calibration_error(memory: AssociativeMemory, samples: Samples, bins: int = 15)",
        "def calibration_error(memory: AssociativeMemory, samples: Samples, bins: int = 1)",
        ("tests/test_metrics.py::test_the_calibration_of_a_memory_is_that_of_its_first_choices",),
    ),
    # --- tables and images --------------------------------------------------------------------------------------
    Mutant(
        "the final models learn from test rows",
        "paper/src/ahop_paper/tabular.py",
        "final(model, settings, frame.iloc[train], labels[train], split, config.device)",
        "final(model, settings, frame, labels, split, config.device)",
        (FINAL,),
    ),
    Mutant(
        "test rows are drawn from all",
        "paper/src/ahop_paper/tabular.py",
        "for which in (train, ~train)]",
        "for which in (train, train | True)]",
        (FINAL,),
    ),
    Mutant(
        "test rows are seen while tuning",
        "paper/src/ahop_paper/tabular.py",
        "train_test_split(train, test_size=config.checked, stratify=labels[train], random_state=0)",
        "train_test_split(np.arange(len(labels)), test_size=config.checked, random_state=0)",
        ("paper/tests/test_tabular.py::test_test_rows_are_not_seen_while_tuning",),
    ),
    Mutant(
        "settings were chosen on another split, by what are test rows here",
        "paper/src/ahop_paper/tabular.py",
        "return name, MODELS[model].search or model, split",
        "return name, MODELS[model].search or model, 0",
        ("paper/tests/test_tabular.py::test_each_split_is_tuned_by_itself",),
    ),
    Mutant(
        "a trial learns from the rows that it is judged by",
        "paper/src/ahop_paper/table_models.py",
        "parts = frame.iloc[learn], labels[learn]",
        "parts = frame.iloc[np.r_[learn, check]], labels[np.r_[learn, check]]",
        ("paper/tests/test_tabular.py::test_a_trial_learns_from_no_row_that_it_is_judged_by",),
    ),
    Mutant(
        "images are standardised by test images",
        "paper/src/ahop_paper/images.py",
        "pixels = images.float() / 255",
        "pixels = photos.test.to(device).float() / 255",
        ("paper/tests/test_images.py::test_training_does_not_look_at_the_test_images",),
    ),
    # --- a memory of cases --------------------------------------------------------------------------------------
    Mutant(
        "a row hears its own label from the other rows of its batch",
        "src/ahop/estimators/training.py",
        "hidden = torch.eye(len(batch), len(chosen), dtype=torch.bool, device=batch.device)",
        "hidden = torch.zeros(len(batch), len(chosen), dtype=torch.bool, device=batch.device)",
        (OWN_LABEL,),
    ),
    Mutant(
        "a row hears its own label from the cases",
        "src/ahop/estimators/training.py",
        "hidden = batch[:, None] == cases",
        "hidden = torch.zeros(len(batch), len(cases), dtype=torch.bool)",
        (OWN_LABEL,),
    ),
    Mutant(
        "a row is drawn to stand beside itself",
        "src/ahop/estimators/training.py",
        "others = order[(start + len(batch) + drawn) % len(order)]",
        "others = order[(start + drawn) % len(order)]",
        (OWN_LABEL,),
    ),
    Mutant(
        "what a row may not see is seen",
        "src/ahop/estimators/cases.py",
        "table = table.masked_fill(hidden, -torch.inf)",
        "table = table.masked_fill(hidden, 0.0)",
        (OWN_LABEL,),
    ),
    Mutant(
        "the best pass is chosen by rows that were learned from",
        "src/ahop/estimators/training.py",
        "_held_out_loss(network, rows[held[:_EVALUATED_ROWS]], rows[shown])",
        "_held_out_loss(network, rows[learned[:_EVALUATED_ROWS]], rows[shown])",
        (HELD_OUT,),
    ),
    Mutant(
        "a temperature is fitted to rows that were learned from",
        "src/ahop/estimators/tables.py",
        "rows[learned if cases is None else cases]), rows[kept])",
        "rows[learned if cases is None else cases]), rows[learned])",
        (HELD_OUT,),
    ),
    Mutant(
        "a temperature is fitted to rows that find themselves",
        "src/ahop/estimators/tables.py",
        "temperature(CaseMemory(network, rows[learned if cases is None else cases]), rows[kept])",
        "temperature(CaseMemory(network, rows), rows[kept])",
        (HELD_OUT,),
    ),
    Mutant(
        "held-out rows are learned from",
        "src/ahop/estimators/tables.py",
        "            shown[kept] = False\n",
        "            shown[kept] = True\n",
        (HELD_OUT,),
    ),
    # --- what is held out to learn a similarity ---------------------------------------------------------------
    Mutant(
        "smoothness is judged by samples that were learned from",
        "src/ahop/learning/footprint.py",
        "loss = table.loss_and_gradient(start, shares=judged)[0].item()",
        "loss = table.loss_and_gradient(start, shares=shown)[0].item()",
        (SMOOTHNESS,),
    ),
    Mutant(
        "the samples that smoothness is judged by are learned from",
        "src/ahop/learning/footprint.py",
        "return (judged == 0).to(judged) / (table.samples - len(held_out)), judged",
        "return table.even_shares(), judged",
        (SMOOTHNESS,),
    ),
    Mutant(
        "a fit of footprints is compared with its start on samples that it learned from",
        "src/ahop/learning/footprint.py",
        '_newton(table, start, smoothness, shares, steps, "judging the fit")',
        '_newton(table, start, smoothness, table.even_shares(), steps, "judging the fit")',
        (JUDGED,),
    ),
    Mutant(
        "a temperature is fitted to origins that were learned from",
        "src/ahop/similarity/families/validation.py",
        "self._thinned((fold != index).nonzero().squeeze(1)),",
        "self._thinned((fold >= 0).nonzero().squeeze(1)),",
        (FOLDS_APART,),
    ),
    Mutant(
        "cross-validation judges a model by what it was learned from",
        "src/ahop/similarity/families/validation.py",
        "scores.append(self.score(fit(learn), rows))",
        "scores.append(self.score(fit(rows), rows))",
        (FOLDS_APART,),
    ),
    Mutant(
        "folds go by queries, so that an origin is in several",
        "src/ahop/learning/holdout.py",
        "    known, group = origins.unique(return_inverse=True)\n",
        "    known = group = torch.arange(len(origins))\n",
        (FOLDS_APART,),
    ),
    Mutant(
        "folds begin with what pairs left out have taught of single dimensions",
        "src/ahop/similarity/families/independent/learning.py",
        "            replace(self.problem, data=self.problem.data.part(rows)).forget_dimensions(state)\n",
        "",
        (FOLDS,),
    ),
    Mutant(
        "a half is asked about itself",
        "src/ahop/similarity/families/fitting.py",
        "return [(chosen.refit(one), other), (chosen.refit(other), one)]",
        "return [(chosen.refit(one), one), (chosen.refit(other), other)]",
        (HALVES,),
    ),
    Mutant(
        "kinds of noise are judged by queries that were learned from",
        "src/ahop/similarity/families/independent/refinement.py",
        "return terms.expect(there, state.regimes, state.log_rho)[0]",
        "return terms.expect(data, state.regimes, state.log_rho)[0]",
        (
            "tests/similarity/families/test_validation.py"
            "::test_what_single_dimensions_may_differ_in_is_judged_by_queries_that_were_not_learned_from",
        ),
    ),
    Mutant(
        "a model that is judged remembers the queries that it is judged by",
        "src/ahop/similarity/families/independent/learning.py",
        "self.problem.iterate(state, self.evidence.part(rows), steps=60)",
        "self.problem.iterate(state, self.evidence, steps=60)",
        ("tests/similarity/families/test_validation.py::test_what_is_learned_again_rests_on_its_own_queries_alone",),
    ),
    Mutant(
        "regimes at a floor are judged by queries that were learned from",
        "src/ahop/similarity/families/floor/learning.py",
        "return _evidence(model, cells, rows[judge], log_prior)",
        "return _evidence(model, cells, rows[learn], log_prior)",
        (
            "tests/similarity/families/test_validation.py"
            "::test_regimes_at_a_floor_are_judged_by_queries_that_were_not_learned_from",
        ),
    ),
    # --- definitions ------------------------------------------------------------------------------------------
    *DEFINITIONS,
)
