"""What queries ask for beyond the plainest corruption of single dimensions: taken where held-out queries gain."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from ahop.learning.chance import more_than_chance
from ahop.learning.holdout import holdout_split
from ahop.similarity.families.independent import terms
from ahop.similarity.families.independent.learning import Fit, State, settled
from ahop.similarity.families.independent.likelihood import Likelihood
from ahop.similarity.families.independent.terms import Evidence

# Nats a query that are too little to prefer a richer corruption for.
_LEAST_GAIN = 1e-3


def refined(fit: Fit, *, first: bool = False) -> Fit:
    """Let dimensions differ, noise be of several kinds, queries of several regimes, where held-out queries gain;
    only the first of these to save time."""
    problem, queries = fit.problem, fit.evidence.queries
    data, there = (fit.evidence.part(rows) for rows in holdout_split(len(queries), problem.seed, queries.device))
    if len(there.queries) < 8:
        return fit

    def judged(state: State) -> Tensor:
        """Fit on some queries, and give the log evidence of each of the others."""
        problem.iterate(state, data, steps=30)
        return terms.expect(there, state.regimes, state.log_rho)[0]

    current = copy.deepcopy(fit.state)
    base = judged(current)
    regimes = 2 * (partial(_more_regimes, floor=problem.floor),) if problem.regimes else ()
    for changes in ((_differing,),) if first else ((_differing,), (_more_kinds, _more_kinds), regimes):
        for change in changes:
            trial = change(copy.deepcopy(current), data)
            value = judged(trial)
            if not more_than_chance(value - base, least=_LEAST_GAIN):
                break
            current, base = trial, value
    trace = fit.trace + problem.iterate(current, fit.evidence, steps=60)
    if not problem.data.labelled and len(current.regimes) > 1:
        return settled(problem, current, 10, trace)
    return Fit(problem, current, fit.evidence, trace)


def of_either_start(first: Fit, second: State) -> Fit:
    """The likelier of two fits without labels: what starts best for one regime need not for several."""
    if len(first.state.regimes) == 1:
        return first
    other = refined(settled(first.problem, second, 40))
    if float(other.log_evidence().mean()) >= float(first.log_evidence().mean()):
        return other
    return replace(first, evidence=first.problem.near(first.state).candidates(first.state))


def _more_regimes(state: State, data: Evidence, floor: float) -> State:
    """One more regime: the commonest splits into the queries it explains well and those it explains badly."""
    total, shares = terms.expect(data, state.regimes, state.log_rho)
    common = int(shares.sum(0).argmax())
    hard = total < total.median()
    new = copy.deepcopy(state.regimes[common])
    for regime, rows in ((state.regimes[common], ~hard), (new, hard)):
        weights = shares[:, common] * rows[data.owner]
        for _ in range(8):
            terms.maximise(data, regime, weights, state.shrinkage, floor)
    log_rho = torch.cat([state.log_rho, state.log_rho[common : common + 1]])
    return State([*state.regimes, new], torch.log_softmax(log_rho, 0), state.shrinkage)


def _differing(state: State, data: Evidence) -> State:
    return State(state.regimes, state.log_rho, terms.estimate_shrinkage(data, state.regimes, state.log_rho))


def _more_kinds(state: State, data: Evidence) -> State:
    """One more kind of noise: the commonest splits into a narrower and a wider one."""
    return State([_split_kind(regime) for regime in state.regimes], state.log_rho, state.shrinkage)


def _split_kind(regime: Likelihood) -> Likelihood:
    new = regime.like(components=regime.components + 1)
    common = int(regime.mix_logits.argmax())
    for name in ("bias", "log_scale", "mask_logits", "background"):
        getattr(new, name).copy_(getattr(regime, name))
    for name, steps in (("gain", (0.0, 0.0)), ("log_sigma", (-0.4, 0.4)), ("mix_logits", (-0.7, -0.7))):
        old = getattr(regime, name)
        values = torch.cat([old, old[common : common + 1]])
        values[common] += steps[0]
        values[-1] += steps[1]
        getattr(new, name).copy_(values)
    return new
