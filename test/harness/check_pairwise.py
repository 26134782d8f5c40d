#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check that pairwise choices contain every pair of values, are the same each time, and are few."""

import itertools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.pairwise import choose  # noqa: E402

# sizes of factors, and the most combinations that may be chosen: the largest two sizes multiplied are the least
SHAPES = (((2, 3), 6), ((2, 2, 2), 6), ((2, 2, 3), 6), ((2, 4, 5), 22), ((3, 4, 10), 44), ((2, 2, 3, 3), 13))


def main():
    for sizes, most in SHAPES:
        factors = [[f"{name}{number}" for number in range(size)] for name, size in zip("abcd", sizes)]
        chosen = choose(False, *factors)
        for (first, of_first), (second, of_second) in itertools.combinations(enumerate(factors), 2):
            there = {(combination[first], combination[second]) for combination in chosen}
            missing = set(itertools.product(of_first, of_second)) - there
            if missing:
                sys.exit(f"{sizes}: the pairs {sorted(missing)} are not chosen")
        if len(chosen) > most or len(set(chosen)) != len(chosen) or chosen != choose(False, *factors):
            sys.exit(f"{sizes}: {len(chosen)} combinations, not {most} at most, or not the same ones again")
        if len(choose(True, *factors)) != len(set(itertools.product(*factors))):
            sys.exit(f"{sizes}: not all combinations")
    # What is not possible is not chosen, and takes no pair with it.
    chosen = choose(False, "ab", "12", "xy", possible=lambda *values: values[:2] != ("a", "1"))
    pairs = {pair for values in chosen for pair in itertools.combinations(values, 2)}
    if ("a", "1") in pairs or not {("1", "x"), ("1", "y"), ("a", "x"), ("a", "y"), ("a", "2")} <= pairs:
        sys.exit(f"not the possible pairs: {sorted(chosen)}")
    print(f"{len(SHAPES)} shapes: every pair of values is chosen")


if __name__ == "__main__":
    main()
