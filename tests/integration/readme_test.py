# SPDX-License-Identifier: Apache-2.0
"""The README's commands run as written, and its code is the code that is built."""

import os
import re
import subprocess
import unittest

from harness import SOURCE_DIR, DtjTest

# Not run from here: this very test is part of it.
NOT_RUN = ("make test",)


def blocks(language):
    with open(os.path.join(SOURCE_DIR, "README.md"), encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.M | re.S)


def source(path):
    with open(os.path.join(SOURCE_DIR, path), encoding="utf-8") as file:
        return file.read()


class Readme(DtjTest):

    def test_its_commands_run_as_written(self):
        commands = [line for block in blocks("sh") for line in block.splitlines()
                    if line.strip() and not line.startswith("#")]
        self.assertIn("make demo", [command.split("#")[0].strip() for command in commands])
        for command in commands:
            if command.startswith(NOT_RUN):
                continue
            with self.subTest(command=command):
                done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=SOURCE_DIR, text=True,
                                      env=self.environment(), capture_output=True, timeout=500, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_its_program_is_the_one_that_the_tests_build(self):
        self.assertEqual(blocks("cpp"), [source("tests/integration/own_program/main.cc")])
        self.assertLessEqual(len(blocks("cpp")[0].splitlines()), 40)

    def test_its_build_file_and_manifest_are_those_that_the_tests_use(self):
        self.assertEqual(blocks("cmake"), [source("tests/integration/own_program/CMakeLists.txt")])
        self.assertIn(source("tests/integration/own_program/job.yaml"), blocks("yaml"))

    def test_ci_runs_its_test_command(self):
        self.assertIn("make test", source(".ci/run"))
        self.assertIn("make test", "".join(blocks("sh")))

    def test_it_stays_short(self):
        self.assertLessEqual(len(source("README.md").splitlines()), 300)


if __name__ == "__main__":
    unittest.main()
