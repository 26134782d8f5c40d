# SPDX-License-Identifier: BSD-3-Clause
"""A few combinations of several factors, such as wire, verb and number of engines, in place of all.

Most faults need one value, or two values of different factors together. So the combinations contain every pair of values of
every two factors; which ones they are depends on the factors alone, and is the same in each run.
"""

import itertools


def pairs_of(combination):
    """Return the pairs of a combination: of the values of each two factors, which are known by their places."""
    return set(itertools.combinations(enumerate(combination), 2))


def pairwise(*factors):
    """Return combinations, a value of each factor each, that contain all pairs of values."""
    candidates = list(itertools.product(*factors))
    missing = set().union(*map(pairs_of, candidates))
    chosen = []
    while missing:
        best = max(candidates, key=lambda candidate: len(pairs_of(candidate) & missing))  # the first one of the best
        chosen.append(best)
        missing -= pairs_of(best)
    return chosen


def choose(complete, *factors):
    """Return all combinations if the tests are to be complete, or else some that contain all pairs of values."""
    return list(itertools.product(*factors)) if complete else pairwise(*factors)
