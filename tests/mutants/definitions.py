"""Networks that are defined wrongly: each is another network than the one that was published under its name."""

from tests.mutants.mutant import Mutant

EPANECHNIKOV = "tests/separation/test_epanechnikov.py::"
REGULARISED = "tests/separation/test_regularised.py::"
SUBSETS = "tests/separation/test_subsets.py::"
LOSS = "tests/separation/test_loss.py::"
GRADIENT = "tests/separation/test_separation.py::test_weights_are_the_gradient_of_the_conjugate"
ENERGY = "tests/test_energy.py::"
CONTEXT = "tests/memories/test_context.py::"
FOURIER = "tests/memories/test_fourier.py::"
GAUSSIAN = "tests/memories/test_gaussian.py::"
SCATTERED = "tests/memories/test_oracle.py::test_a_pattern_that_scatters_is_as_likely_as_the_mean_over_where_it_may_be"
SPREAD = "tests/memories/test_scattered.py::"
SEQUENCE = "tests/memories/test_sequence.py::"
TRANSFORMER = "tests/nn/test_transformer.py::"

DEFINITIONS = (
    # --- separations ------------------------------------------------------------------------------------------
    Mutant(
        "a pattern reaches too near",
        "src/ahop/separation/epanechnikov.py",
        "1 + self.beta / 2 * scores",
        "1 + self.beta * scores",
        (
            EPANECHNIKOV + "test_the_reach_is_what_its_docstring_says",
            EPANECHNIKOV + "test_its_energy_is_that_of_the_paper",
            EPANECHNIKOV + "test_a_stored_pattern_is_an_exact_fixed_point_if_all_others_are_out_of_its_reach",
            EPANECHNIKOV + "test_states_come_to_rest_at_memories_and_nowhere_else",
        ),
    ),
    Mutant(
        "patterns within reach weigh by their heights",
        "src/ahop/separation/epanechnikov.py",
        "return shares((self._heights(scores) > 0).to(scores.dtype))",
        "return shares(self._heights(scores))",
        (
            EPANECHNIKOV + "test_its_step_goes_down_the_gradient_and_its_energy_never_rises",
            EPANECHNIKOV + "test_states_come_to_rest_at_memories_and_nowhere_else",
        ),
    ),
    Mutant(
        "the nearest within reach is alone, so that no new memory emerges",
        "src/ahop/separation/epanechnikov.py",
        "self._heights(scores) > 0",
        "scores == scores.amax(-1, keepdim=True)",
        (
            EPANECHNIKOV + "test_the_corners_of_a_square_are_kept_and_nine_new_memories_emerge",
            EPANECHNIKOV + "test_for_some_reach_every_pattern_is_kept_and_further_memories_emerge_between_them",
            EPANECHNIKOV + "test_a_stored_pattern_is_an_exact_fixed_point_if_all_others_are_out_of_its_reach",
            EPANECHNIKOV + "test_states_come_to_rest_at_memories_and_nowhere_else",
        ),
    ),
    Mutant(
        "a query that no pattern reaches has an answer",
        "src/ahop/memories/base.py",
        "chosen = chosen.masked_fill(sure == 0, -1)",
        "chosen = chosen.clone()",
        (EPANECHNIKOV + "test_a_stranger_has_no_probability_and_stays_where_it_is",),
    ),
    Mutant(
        "entmax has another margin",
        "src/ahop/separation/sparse.py",
        "return 1 / (torch.as_tensor(self.alpha).item() - 1)",
        "return 1 / torch.as_tensor(self.alpha).item()",
        (
            REGULARISED + "test_margins_are_those_that_are_published",
            REGULARISED + "test_from_the_margin_on_weights_are_exact_and_before_it_they_are_not",
            REGULARISED + "test_one_step_retrieves_a_pattern_exactly_where_it_leads_by_the_margin",
            LOSS + "test_it_is_zero_once_the_target_leads_by_the_margin_and_not_before",
        ),
    ),
    Mutant(
        "normmax has another margin",
        "src/ahop/separation/sparse.py",
        "** (1 / self.alpha) - 1\n\n    @property\n    def margin(self) -> float:\n        return 1.0",
        "** (1 / self.alpha) - 1\n\n    @property\n    def margin(self) -> float:\n        return 1 / self.alpha",
        (
            REGULARISED + "test_margins_are_those_that_are_published",
            REGULARISED + "test_from_the_margin_on_weights_are_exact_and_before_it_they_are_not",
            REGULARISED + "test_one_step_retrieves_a_pattern_exactly_where_it_leads_by_the_margin",
            LOSS + "test_it_is_zero_once_the_target_leads_by_the_margin_and_not_before",
        ),
    ),
    Mutant(
        "sets have another margin",
        "src/ahop/separation/subsets.py",
        "    def margin(self) -> float:\n        return 1.0",
        "    def margin(self) -> float:\n        return 0.5",
        (
            REGULARISED + "test_margins_are_those_that_are_published",
            REGULARISED + "test_from_the_margin_on_weights_are_exact_and_before_it_they_are_not",
            REGULARISED + "test_one_step_retrieves_a_pattern_exactly_where_it_leads_by_the_margin",
            LOSS + "test_it_is_zero_once_the_target_leads_by_the_margin_and_not_before",
        ),
    ),
    Mutant(
        "normmax has the norm of another alpha",
        "src/ahop/separation/sparse.py",
        "normmax_bisect(self._tempered(scores)[0], alpha=self.alpha, dim=-1)",
        "normmax_bisect(self._tempered(scores)[0], alpha=2, dim=-1)",
        (
            REGULARISED + "test_no_other_weights_have_a_higher_regularised_score",
            GRADIENT,
            ENERGY + "test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it",
        ),
    ),
    Mutant(
        "sparsemax is penalised by its whole square",
        "src/ahop/separation/sparse.py",
        "(weights.square().sum(-1) - 1) / 2",
        "weights.square().sum(-1) - 1",
        (
            REGULARISED + "test_no_other_weights_have_a_higher_regularised_score",
            GRADIENT,
            ENERGY + "test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it",
        ),
    ),
    Mutant(
        "entmax has another entropy than its weights maximise",
        "src/ahop/separation/sparse.py",
        "(self.alpha * (self.alpha - 1))",
        "self.alpha",
        (
            GRADIENT,
            ENERGY + "test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it",
        ),
    ),
    Mutant(
        "normmax is penalised by a power of its norm",
        "src/ahop/separation/sparse.py",
        "(weights**self.alpha).sum(-1) ** (1 / self.alpha) - 1",
        "(weights**self.alpha).sum(-1) - 1",
        (
            REGULARISED + "test_no_other_weights_have_a_higher_regularised_score",
            GRADIENT,
            ENERGY + "test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it",
        ),
    ),
    Mutant(
        "a set of k has the weight of one",
        "src/ahop/separation/subsets.py",
        "budget=self.k, dim=-1",
        "budget=1, dim=-1",
        (
            SUBSETS + "test_weights_are_probabilities_that_sum_to_k_and_respect_the_order_of_scores",
            SUBSETS + "test_weights_are_the_gradient_of_the_conjugate",
        ),
    ),
    Mutant(
        "what is read out of a set is its mean",
        "src/ahop/separation/subsets.py",
        "return torch.where(exact, (leads >= 0).to(weights.dtype), weights)",
        "return torch.where(exact, (leads >= 0).to(weights.dtype), weights) / self.k",
        (
            SUBSETS + "test_weights_are_probabilities_that_sum_to_k_and_respect_the_order_of_scores",
            SUBSETS + "test_a_recall_says_of_each_pattern_whether_it_is_in_the_set",
            SUBSETS + "test_noisy_sums_of_patterns_are_given_back_as_sets_at_rest_and_softmax_gives_none",
        ),
    ),
    Mutant(
        "sets are penalised by their whole square",
        "src/ahop/separation/subsets.py",
        "(weights.square().sum(-1) - self.k) / 2",
        "weights.square().sum(-1) - self.k",
        (
            SUBSETS + "test_weights_are_the_gradient_of_the_conjugate",
            ENERGY + "test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it",
        ),
    ),
    Mutant(
        "the energy of a dot product has no bowl",
        "src/ahop/energy.py",
        "return energy if bowl is None else energy + bowl",
        "return energy",
        (
            ENERGY + "test_energies_of_continuous_networks_never_rise",
            ENERGY + "test_energies_of_sparse_weights_and_of_sets_never_rise",
            ENERGY + "test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it",
        ),
    ),
    Mutant(
        "the energy of softmax is that of another temperature",
        "src/ahop/separation/tempered.py",
        "torch.logsumexp(gaps, dim=-1) / self.beta + best",
        "torch.logsumexp(gaps, dim=-1) + best",
        (
            REGULARISED + "test_no_other_weights_have_a_higher_regularised_score",
            GAUSSIAN + "test_means_beside_deviations_are_the_published_memory_of_gaussians_without_correlations",
            ENERGY + "test_a_step_with_dot_products_is_one_along_the_gradient_of_the_energy_as_autograd_has_it",
        ),
    ),
    Mutant(
        "a loss leaves out the regulariser of its target",
        "src/ahop/separation/loss.py",
        "separation.conjugate(leads) + regulariser - (target * leads).sum(-1)",
        "separation.conjugate(leads) - (target * leads).sum(-1)",
        (LOSS + "test_a_loss_is_zero_where_the_weights_are_the_target_and_above_zero_elsewhere",),
    ),
    Mutant(
        "a loss is the cross-entropy whatever its separation",
        "src/ahop/separation/loss.py",
        "separation.conjugate(leads) + regulariser",
        "torch.logsumexp(leads, -1) + regulariser",
        (
            LOSS + "test_it_is_zero_once_the_target_leads_by_the_margin_and_not_before",
            LOSS + "test_its_gradient_is_the_weights_less_the_target",
        ),
    ),
    Mutant(
        "distances are not squared",
        "src/ahop/similarity/fixed.py",
        "return 0 - squared_distances(patterns, queries, observed)",
        "return 0 - squared_distances(patterns, queries, observed).sqrt()",
        (
            EPANECHNIKOV + "test_its_energy_is_that_of_the_paper",
            EPANECHNIKOV + "test_with_softmax_no_memory_emerges_as_long_as_every_pattern_is_kept",
            GAUSSIAN + "test_means_beside_deviations_are_the_published_memory_of_gaussians_without_correlations",
        ),
    ),
    # --- memories ---------------------------------------------------------------------------------------------
    Mutant(
        "f-hop draws its frequencies for another temperature",
        "src/ahop/memories/fourier.py",
        "math.sqrt(self.beta) * frequencies",
        "self.beta * frequencies",
        (
            FOURIER + "test_the_error_falls_as_the_root_of_the_features",
            FOURIER + "test_the_same_features_have_a_worse_sum_the_larger_beta_and_in_the_end_a_useless_one",
        ),
    ),
    Mutant(
        "f-hop steps along the gradient of its log density, not of its energy",
        "src/ahop/memories/fourier.py",
        "/ (self.beta * found[:, None])",
        "/ found[:, None]",
        (FOURIER + "test_a_step_is_the_gradient_of_the_energy_as_autograd_has_it",),
    ),
    Mutant(
        "q-hop takes what came before for what comes next",
        "src/ahop/memories/sequence.py",
        "torch.cat([patterns[1:], patterns[-1:]])",
        "torch.cat([patterns[:1], patterns[:-1]])",
        (
            SEQUENCE + "test_a_sequence_is_replayed_from_a_damaged_hint_and_its_end_stays",
            SEQUENCE + "test_a_step_is_the_sum_of_the_definition",
        ),
    ),
    Mutant(
        "powers forget the sign of a score",
        "src/ahop/separation/fixed.py",
        "scores / scores.abs().amax(-1, keepdim=True)",
        "scores.abs() / scores.abs().amax(-1, keepdim=True)",
        (SEQUENCE + "test_a_step_is_the_sum_of_the_definition",),
    ),
    Mutant(
        "q-hop is not pushed on once it has dwelt",
        "src/ahop/memories/sequence.py",
        "_TRANSITION_WEIGHT * over @ self.values",
        "over @ self.values",
        (SEQUENCE + "test_states_stay_as_long_as_the_dwell_says",),
    ),
    Mutant(
        "powers forget that high powers of a normal number are often large",
        "src/ahop/theory.py",
        'range(1, 2 * integer(k, "k", 1), 2)',
        'range(1, integer(k, "k", 1), 2)',
        (SEQUENCE + "test_powers_know_as_many_transitions_as_the_paper_derives",),
    ),
    Mutant(
        "exponentials disturb by their mean, not by their mean square",
        "src/ahop/theory.py",
        "math.exp(2) / math.cosh(2)",
        "math.exp(1) / math.cosh(1)",
        (SEQUENCE + "test_what_the_exponential_knows_grows_exponentially",),
    ),
    Mutant(
        "patterns scatter by their variances",
        "src/ahop/memories/scattered.py",
        "torch.cat([means, single(self.spread)], 1)",
        "torch.cat([means, single(self.spread).square()], 1)",
        (GAUSSIAN + "test_answers_are_those_of_bayes", SCATTERED),
    ),
    Mutant(
        "b-hop leaves the scatter of patterns as it is before the gain",
        "src/ahop/similarity/families/independent/likelihood.py",
        "wider = 1 + gain**2 / noise * scatter",
        "wider = 1 + scatter / noise",
        (SPREAD + "test_the_likelihood_of_a_value_is_its_mean_over_what_may_have_been_measured",),
    ),
    Mutant(
        "hidden causes leave the scatter of patterns as it is before the gain",
        "src/ahop/similarity/families/correlated/scattered.py",
        "scatter = gain.square() * variance",
        "scatter = variance.expand_as(mean)",
        (SPREAD + "test_the_likelihood_of_hidden_causes_has_the_spread_on_its_diagonal",),
    ),
    Mutant(
        "hidden causes learn as if what was measured were the mean of a pattern",
        "src/ahop/similarity/families/correlated/scattered.py",
        "patterns[part, :dim] + off / model.gain",
        "patterns[part, :dim] + 0 * off",
        (SPREAD + "test_the_evidence_of_hidden_causes_never_falls",),
    ),
    Mutant(
        "a gain leaves the scatter of patterns as it was",
        "src/ahop/variants/channel.py",
        "shift=self.shift * by, variance=self.variance * by.square(), fills=fills",
        "shift=self.shift * by, variance=self.variance + 0 * by, fills=fills",
        (SCATTERED,),
    ),
    Mutant(
        "the spread of few measurements does not borrow from others",
        "src/ahop/memories/replicates.py",
        "return ((more * common + half * own) / (more + half)).to(squares)",
        "return own.to(squares)",
        (
            "tests/memories/test_replicates.py"
            "::test_shrunk_variances_are_nearer_to_the_truth_than_own_and_than_common_ones",
        ),
    ),
    Mutant(
        "the mean of few measurements counts as exact",
        "src/ahop/memories/scattered.py",
        "moderated(squares, free) * (1 + 1 / counts[:, None])",
        "moderated(squares, free)",
        (GAUSSIAN + "test_the_mean_of_few_measurements_is_uncertain_itself",),
    ),
    Mutant(
        "a prior of a query's own rules out, and weighs nothing",
        "src/ahop/memories/context.py",
        "some.prior = self.prior",
        "some.prior = (self.prior > 0).to(self.prior)",
        (CONTEXT + "test_probabilities_are_those_of_bayes",),
    ),
    Mutant(
        "what a context leaves out competes",
        "src/ahop/memories/context.py",
        "some.prior = self.prior",
        "some.prior = torch.ones_like(self.prior)",
        (
            CONTEXT + "test_in_a_context_a_memory_answers_as_one_of_its_patterns_alone",
            CONTEXT + "test_a_context_never_brings_the_best_rival_nearer_and_weighs_what_it_leaves_out_by_exactly_zero",
        ),
    ),
    # --- layers -----------------------------------------------------------------------------------------------
    Mutant(
        "keys are not drawn to those who ask for them",
        "src/ahop/nn/transformer.py",
        "linear(asked, self.query.weight.T) + linear(asking, self.key.weight.T)",
        "linear(asked, self.query.weight.T)",
        (TRANSFORMER + "test_a_step_is_the_gradient_of_the_energy_as_autograd_has_it",),
    ),
    Mutant(
        "an energy transformer asks itself",
        "src/ahop/nn/transformer.py",
        "blocked = torch.eye(length, dtype=torch.bool, device=tokens.device)",
        "blocked = torch.zeros(length, length, dtype=torch.bool, device=tokens.device)",
        (TRANSFORMER + "test_the_energy_is_the_formula",),
    ),
    Mutant(
        "tokens are pushed away from the patterns that they look up",
        "src/ahop/nn/transformer.py",
        "return attention + linear(self._looked_up(normal, padding), self.patterns.T)",
        "return attention - linear(self._looked_up(normal, padding), self.patterns.T)",
        (
            TRANSFORMER + "test_a_step_is_the_gradient_of_the_energy_as_autograd_has_it",
            TRANSFORMER + "test_the_energy_falls_at_every_step",
        ),
    ),
    Mutant(
        "the norm of an energy transformer is the gradient of another spread",
        "src/ahop/nn/transformer.py",
        "tokens.var(-1, correction=0)",
        "tokens.var(-1, correction=1)",
        (TRANSFORMER + "test_the_norm_is_the_gradient_of_its_lagrangian",),
    ),
)
