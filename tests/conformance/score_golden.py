"""The stored reference distributions, and how an implementation is compared with them.

A golden keeps, for every position of a text, the reference's K most likely tokens with their
log-probabilities, and M more tokens drawn from the rest of the reference's distribution (with
replacement, each with its probability). Log-probabilities are stored in steps of 1/2048.

The divergence is KL(reference || ours), from the identity

    sum_i p_i (ln p_i - ln q_i) = sum_i p_i g(q_i / p_i),     g(r) = r - 1 - ln r >= 0,

which holds because p and q both sum to 1. The K stored tokens give their terms exactly; the rest
of the vocabulary, of reference mass R, is estimated without bias by R times the mean of g over
the M drawn tokens. No term is negative, so the estimate is stable where sum p (ln p - ln q) over
drawn tokens would be noise. A token that our list does not reach counts with the largest
probability it can have there: the smallest listed one, or its reference value if that is less.
"""

import json
from dataclasses import dataclass

import numpy as np

STEP = 2048.0


@dataclass
class Sequence:
    name: str
    ids: np.ndarray  # [n]
    top_ids: np.ndarray  # [n, K], most likely first
    top_logprobs: np.ndarray  # [n, K]
    tail_ids: np.ndarray  # [n, M]
    tail_logprobs: np.ndarray  # [n, M]
    tail_mass: np.ndarray  # [n]


def take(name, ids, logprobs, top, tail, random):
    """Condenses a reference's full log-probabilities [n, vocabulary]."""
    order = np.argsort(-logprobs, axis=1, kind="stable")
    rest = order[:, top:]
    p_rest = np.exp(np.take_along_axis(logprobs, rest, 1))
    mass = p_rest.sum(axis=1)
    drawn = np.empty((len(ids), tail), dtype=np.int64)
    for i, p in enumerate(p_rest):
        drawn[i] = rest[i][random.choice(p.size, tail, p=p / p.sum())]
    return Sequence(
        name,
        np.asarray(ids),
        order[:, :top],
        np.take_along_axis(logprobs, order[:, :top], 1),
        drawn,
        np.take_along_axis(logprobs, drawn, 1),
        mass,
    )


def _pack(logprobs):
    return np.clip(np.round(-logprobs * STEP), 0, 65535).astype(np.uint16)


def _unpack(steps):
    return steps.astype(np.float64) / -STEP


def save(path, meta, sequences):
    arrays = {"meta": np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)}
    for s in sequences:
        arrays[f"{s.name}/ids"] = s.ids.astype(np.uint16)
        arrays[f"{s.name}/top_ids"] = s.top_ids.astype(np.uint16)
        arrays[f"{s.name}/top_logprobs"] = _pack(s.top_logprobs)
        arrays[f"{s.name}/tail_ids"] = s.tail_ids.astype(np.uint16)
        arrays[f"{s.name}/tail_logprobs"] = _pack(s.tail_logprobs)
        arrays[f"{s.name}/tail_mass"] = s.tail_mass.astype(np.float32)
    np.savez_compressed(path, **arrays)


def load(path):
    with np.load(path) as stored:
        meta = json.loads(stored["meta"].tobytes())
        sequences = [
            Sequence(
                name,
                stored[f"{name}/ids"].astype(np.int64),
                stored[f"{name}/top_ids"].astype(np.int64),
                _unpack(stored[f"{name}/top_logprobs"]),
                stored[f"{name}/tail_ids"].astype(np.int64),
                _unpack(stored[f"{name}/tail_logprobs"]),
                stored[f"{name}/tail_mass"].astype(np.float64),
            )
            for name in meta["sequences"]
        ]
    return meta, sequences


def terms(log_p, log_q):
    """g(q / p) of the identity above."""
    ratio = log_q - log_p
    return np.expm1(ratio) - ratio


def divergence(sequence, ours):
    """Per position: KL(reference || ours), and whether both have the same best token.

    ours: one list of (id, logprob) a position, most likely first.
    """
    if len(ours) != len(sequence.ids):
        raise ValueError(f"{len(ours)} positions for {len(sequence.ids)} tokens")
    kl = np.empty(len(ours))
    best = np.empty(len(ours), dtype=bool)
    for i, row in enumerate(ours):
        known = {int(token): logprob for token, logprob in row}
        lowest = row[-1][1]

        def log_q(ids, log_p):
            return np.array([known.get(t, min(lowest, p)) for t, p in zip(ids.tolist(), log_p)])

        top, tail = sequence.top_logprobs[i], sequence.tail_logprobs[i]
        exact = np.exp(top) * terms(top, log_q(sequence.top_ids[i], top))
        drawn = terms(tail, log_q(sequence.tail_ids[i], tail))
        kl[i] = exact.sum() + sequence.tail_mass[i] * drawn.mean()
        best[i] = row[0][0] == sequence.top_ids[i][0]
    return kl, best
