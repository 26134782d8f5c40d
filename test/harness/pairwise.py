# SPDX-License-Identifier: BSD-3-Clause
"""A few combinations of several factors, such as wire, verb and number of engines, in place of all.

Most faults need one value, or two values of different factors together. So the combinations contain every pair of values of
every two factors; which ones they are depends on the factors alone, and is the same in each run.
"""

import collections
import itertools


def pairs_of(combination):
    """Return the pairs of a combination: of the values of each two factors, which are known by their places."""
    return set(itertools.combinations(enumerate(combination), 2))


def pairwise(candidates):
    """Return some of the combinations that contain all of their pairs. Of those with as many new pairs it is the first one whose
    values were taken least, so that each value has about the same share."""
    missing = set().union(*map(pairs_of, candidates))
    taken = collections.Counter()
    chosen = []
    while missing:
        best = max(candidates, key=lambda candidate: (len(pairs_of(candidate) & missing),
                                                      -sum(taken[value] for value in enumerate(candidate))))
        chosen.append(best)
        missing -= pairs_of(best)
        taken.update(enumerate(best))
    return chosen


def choose(complete, *factors, possible=lambda *_: True):
    """Return all possible combinations of the factors' values if the tests are to be complete, or else some that contain all
    pairs of values."""
    candidates = [combination for combination in itertools.product(*factors) if possible(*combination)]
    return candidates if complete else pairwise(candidates)
