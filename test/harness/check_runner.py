#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what runs the unit tests, by a program whose files pass, fail, skip, die and hang.

usage: check_runner.py PROGRAM
"""

import importlib.util
import os
import signal
import subprocess
import sys
import unittest

TEST_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = sys.argv.pop()
SKIPPED = 77  # as Meson understands it


def load_run_all():
    """Return the module that counts what these programs print."""
    spec = importlib.util.spec_from_file_location("run_all", os.path.join(TEST_DIR, "run-all.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(*words):
    """Return the exit status, and what make test counts: passed, failed, skipped."""
    done = subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, load_run_all().cmocka_counts(done.stdout + "\n" + done.stderr)


class RunnerTest(unittest.TestCase):
    def test_a_file(self):
        self.assertEqual(run("good"), (0, [2, 0, 0]))

    def test_each_file_runs_in_a_process_of_its_own(self):
        self.assertEqual(run("good", "other/*alone", "other/*runs"), (0, [4, 0, 0]))

    def test_one_test_by_its_name_or_a_pattern(self):
        self.assertEqual(run("good__runs"), (0, [1, 0, 0]))
        self.assertEqual(run("good/good__runs"), (0, [1, 0, 0]))
        self.assertEqual(run("*__runs"), (0, [2, 0, 0]))

    def test_no_test_is_an_error(self):
        self.assertEqual(run("goo"), (2, [0, 0, 0]))
        self.assertEqual(run("good", "goo"), (2, [0, 0, 0]))

    def test_failures_of_one_file_are_those_of_the_program(self):
        self.assertEqual(run("good", "other"), (1, [4, 1, 1]))

    def test_a_file_that_is_skipped_counts_as_one(self):
        self.assertEqual(run("good", "absent"), (0, [2, 0, 1]))

    def test_a_program_is_skipped_if_it_is_this_file(self):
        self.assertEqual(run("absent"), (SKIPPED, [0, 0, 0]))

    def test_a_killed_file_is_a_failure_and_the_others_run(self):
        self.assertEqual(run("good", "killed", "other/*alone"), (1, [3, 1, 0]))

    def test_a_test_that_ends_the_program_is_a_failure(self):
        self.assertEqual(run("leaves")[0], 1)
        self.assertEqual(run("leaves", "good")[0], 1)

    def test_a_program_that_is_ended_names_the_file(self):
        with subprocess.Popen([PROGRAM, "good", "stuck"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
            while "it hangs now" not in program.stdout.readline():
                pass
            os.killpg(program.pid, signal.SIGTERM)
            told = program.communicate(timeout=60)[1]
        self.assertIn("while it ran stuck", told)
        self.assertEqual(program.returncode, -signal.SIGTERM)

    def test_list(self):
        listed = subprocess.run([PROGRAM, "--list"], check=True, capture_output=True, text=True).stdout.split()
        self.assertEqual(len(listed), 11)
        self.assertIn("other/other__is_skipped", listed)


if __name__ == "__main__":
    unittest.main()
