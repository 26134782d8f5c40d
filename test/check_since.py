#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks since.py by the graph of this build, and that `make` builds all that is installed.

usage: check_since.py BUILD
"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness.checkout import introspect, output  # noqa: E402
from since import ALWAYS, Graph  # noqa: E402

BUILD = sys.argv.pop()


class SinceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.graph = Graph(BUILD)

    def reached(self, *changed):
        return set(self.graph.reached(set(changed)))

    def test_a_source_reaches_its_room_and_those_that_link_it(self):
        reached = self.reached("pmd/memif/doorbell.c")
        self.assertLessEqual({"memif", "port", "engine"}, reached)
        self.assertFalse({"mem", "wire", "qp", "config"} & reached)

    def test_a_header_reaches_those_that_include_it(self):
        reached = self.reached("pmd/config/include/config/settings.h")
        self.assertLessEqual({"config", "eal", "port", "app_uroced"}, reached)
        self.assertFalse({"mem", "wire", "memif"} & reached)

    def test_a_test_file_reaches_its_room_alone(self):
        self.assertEqual(self.reached("test/unit/mem/test_mr.c"), {"mem", ALWAYS})

    def test_all_runs_of_a_room(self):
        self.assertEqual(self.reached("test/unit/qp/test_run.c"), {"qp", "qp-dcqcn", "qp-swift", ALWAYS})

    def test_a_script_reaches_its_test(self):
        self.assertEqual(self.reached("test/harness/check_pairwise.py"), {"pairwise", ALWAYS})

    def test_a_module_reaches_the_tests_that_are_scripts(self):
        reached = self.reached("test/harness/pairwise.py")
        self.assertLessEqual({"pairwise", "runner", "since", ALWAYS}, reached)
        self.assertFalse({"mem", "wire", "memif"} & reached)

    def test_a_document_reaches_the_test_of_documents(self):
        self.assertEqual(self.reached("doc/user/ci.md"), {ALWAYS})

    def test_data_that_tests_read_reaches_all_of_them(self):
        self.assertLessEqual(self.graph.units, self.reached("test/data/wire/new.pcap"))
        self.assertLessEqual(self.graph.units, self.reached("config/uroce.conf.example"))

    def test_a_build_file_reaches_its_folder(self):
        self.assertLessEqual(self.graph.units, self.reached("meson.build"))
        reached = self.reached("pmd/memif/meson.build")
        self.assertIn("memif", reached)
        self.assertNotIn("mem", reached)

    def test_what_was_never_compiled_is_reached(self):
        class NeverCompiled(Graph):
            def _read_headers(self):
                return {}

        self.assertLessEqual(self.graph.units, set(NeverCompiled(BUILD).reached({"README.md"})))


class ProductTest(unittest.TestCase):
    def test_all_that_is_installed_is_built(self):
        built = {line.split()[-1] for line in output("ninja", "-C", BUILD, "-t", "query", "product").splitlines()}
        installed = {os.path.relpath(file, BUILD) for target in introspect(BUILD, "targets") if target["installed"]
                     for file in target["filename"]}
        self.assertEqual(installed - built, set())


if __name__ == "__main__":
    unittest.main()
