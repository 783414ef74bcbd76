"""What every network should say, from its equation, in NumPy and float64: slow, short and without tricks."""

import numpy as np


def rows(x):
    return np.asarray(x, dtype=np.float64)


# --- where rows lie --------------------------------------------------------------------------------------------------

PLACES = ["anywhere", "near", "offset", "groups", "far", "twice", "zeros", "small"]


def lay(place, random, count, shape, dim):
    """Patterns ``(count, d)`` and queries ``(*shape, d)`` of unit spread that are laid out in an awkward way."""
    patterns, queries = random.normal(size=(count, dim)), random.normal(size=(*shape, dim))
    if place == "anywhere":
        return patterns, queries
    away = 10 ** random.uniform(1, 7)
    if place == "twice":
        patterns = patterns[random.integers(0, (count + 1) // 2, count)]
    if place == "groups":
        patterns += away * random.integers(0, 3, (count, 1))
    if place == "small":
        patterns[: count // 2] /= away
    if place == "zeros":
        patterns[random.random(count) < 0.5] = 0
    noise = 10 ** random.uniform(-3, 0) * np.where(place == "small", 1 / away, 1.0)
    queries = patterns[random.integers(0, count, shape)] + noise * queries
    if place == "zeros":
        queries[random.random(shape) < 0.5] = 0
    if place == "offset":
        patterns, queries = patterns + away, queries + away
    return patterns, queries + away if place == "far" else queries


# --- similarities: patterns (N, d), one query (d,), a mask (d,) of what was observed ------------------------------


def terms(name, patterns, query):
    if name == "dot":
        return patterns * query
    if name == "distance":
        return -((patterns - query) ** 2)
    if name == "manhattan":
        return -np.abs(patterns - query)
    raise ValueError(name)


def similarity(name, patterns, query, seen):
    patterns, query = patterns[:, seen], query[seen]
    if name == "euclidean":
        return -np.sqrt(((patterns - query) ** 2).sum(1))
    if name == "cosine":
        # Rows are made equally long first, or the squares of small ones vanish.
        size = np.abs(patterns).max(1, initial=0.0)
        patterns = patterns / np.where(size > 0, size, 1.0)[:, None]
        query = query / (np.abs(query).max(initial=0.0) or 1.0)
        lengths = np.sqrt((patterns**2).sum(1) * (query**2).sum())
        return (patterns @ query) / np.where(lengths > 0, lengths, 1.0)
    return terms(name, patterns, query).sum(1)


def sizes(name, patterns, query, seen):
    """How large the terms are that each score is the sum of: a score is as exact as they are large."""
    patterns, query = patterns[:, seen], query[seen]
    if name == "cosine":
        return np.ones(len(patterns))
    if name == "dot":
        return np.abs(patterns * query).sum(1)
    return np.abs(similarity(name, patterns, query, np.ones(len(query), bool)))


def footprints(bases, weights, patterns, query, seen):
    """Sorted terms times the weight of their rank; of m terms, the j-th stands for its quantile among d."""
    dim, count = patterns.shape[1], int(seen.sum())
    ranks = np.minimum(((np.arange(count) + 0.5) * dim / max(count, 1)).astype(int), dim - 1)
    total = np.zeros(len(patterns))
    for base, u in zip(bases, weights, strict=True):
        best_first = -np.sort(-terms(base, patterns[:, seen], query[seen]), axis=1)
        total += best_first @ u[ranks]
    return total


def likelihood(part, patterns, query, seen):
    """The mixture of kinds of noise and of a background that is linear between knots, one dimension at a time."""
    value = {name: rows(p.detach()) for name, p in part.named_parameters()}
    lost = 1 / (1 + np.exp(-value["mask_logits"]))
    kinds = softmax(value["mix_logits"])
    density = np.zeros_like(patterns)
    for share, gain, log_sigma in zip(kinds, value["gain"], value["log_sigma"], strict=True):
        sigma = np.exp(log_sigma + value["log_scale"])
        gap = (query - part.centre - value["bias"]) - gain * (patterns - part.centre)
        density += share * np.exp(-0.5 * (gap / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    at = query - value["bias"] if part.shifted else query
    heights = softmax(value["background"])
    heights[[0, -1]] *= 2
    places = np.linspace(part.low, part.high, part.knots)
    background = np.interp(at, places, heights, left=0.0, right=0.0) * (part.knots - 1) / (part.high - part.low)
    background = np.maximum(background, 4e-6 / (part.high - part.low))
    return np.log((1 - lost) * density + lost * background)[:, seen].sum(1)


# --- separations: scores (N,) to weights (N,) --------------------------------------------------------------------


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def entmax(scores, alpha):
    """The threshold that makes the weights sum to one, by bisection."""
    scores = (alpha - 1) * (scores - scores.max())
    low, high = -1.0, 0.0
    for _ in range(200):
        middle = (low + high) / 2
        total = (np.maximum(scores - middle, 0) ** (1 / (alpha - 1))).sum()
        low, high = (middle, high) if total > 1 else (low, middle)
    weights = np.maximum(scores - low, 0) ** (1 / (alpha - 1))
    return weights / weights.sum()


def normmax(scores, alpha):
    """The threshold beyond which the powers have a norm of one, by bisection; then scaled to a sum of one."""
    low, high = scores.max() - 1.0, scores.max()
    for _ in range(200):
        middle = (low + high) / 2
        total = (np.maximum(scores - middle, 0) ** (alpha / (alpha - 1))).sum()
        low, high = (middle, high) if total > 1 else (low, middle)
    weights = np.maximum(scores - low, 0) ** (1 / (alpha - 1))
    return weights / weights.sum()


def subset(scores, k):
    """The threshold below the k-th best that makes the weights, at most one each, sum to k, by bisection."""
    last = np.sort(scores)[-k]
    low, high = last - 1.0, last
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(scores - middle, 0, 1).sum() > k else (low, middle)
    return np.clip(scores - low, 0, 1)


def separate(name, scores, beta, extra):
    if name == "argmax":
        return (np.arange(len(scores)) == scores.argmax()).astype(float)
    if name == "sparsemax":
        return entmax(beta * (scores - scores.max()), 2.0)
    if name == "entmax":
        return entmax(beta * (scores - scores.max()), extra)
    if name == "normmax":
        return normmax(beta * (scores - scores.max()), extra)
    if name == "ksubsets":
        # From the last of them on, where a large beta leaves the digits that decide.
        return subset(beta * (scores - np.sort(scores)[-extra]), extra)
    if name == "epanechnikov":
        near = 1 + beta / 2 * scores > 0
        return near / max(near.sum(), 1)
    return softmax(beta * (scores - scores.max()))


def log_prior(prior):
    with np.errstate(divide="ignore"):
        return np.log(prior / prior.sum())


# --- layers and estimators ---------------------------------------------------------------------------------------


def layer_norm(x, weight=1.0, bias=0.0):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


def head(stored, state, values, beta, name, hidden, added):
    """One head: states (Q, d) look at stored patterns (N, d), but not at those hidden (Q, N)."""
    answer = np.zeros((len(state), values.shape[1]))
    for place, query in enumerate(state):
        seen = ~hidden[place]
        if seen.any():
            scores = similarity(name, stored[seen], query, np.ones(len(query), bool))
            answer[place] = softmax(beta * scores + added[place][seen]) @ values[seen]
    return answer
