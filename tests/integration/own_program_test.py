# SPDX-License-Identifier: Apache-2.0
"""A user's program: built against an installed prefix with find_package(disttrain), then run."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD_DIR, DTJ, SOURCE_DIR

SOURCES = os.path.join(SOURCE_DIR, "tests", "integration", "own_program")


def run(*command, **options):
    done = subprocess.run(command, text=True, capture_output=True, timeout=500, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} left with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


class OwnProgram(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="dt-own-")
        prefix, build = os.path.join(cls.folder, "prefix"), os.path.join(cls.folder, "out")
        run("cmake", "--install", BUILD_DIR, "--prefix", prefix)
        # A copy: nothing of the source tree may be found beside it.
        sources = shutil.copytree(SOURCES, os.path.join(cls.folder, "source"))
        run("cmake", "-S", sources, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", build)
        cls.worker = os.path.join(build, "own_program")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_it_describes_its_program(self):
        listed = json.loads(run(self.worker, "--list-programs").stdout)
        (program,) = listed["programs"]
        self.assertEqual((program["name"], program["driver"]), ("pi", "leader"))
        self.assertEqual([(p["name"], p["type"], p["default"]) for p in program["parameters"]],
                         [("rounds", "integer", 20), ("points", "integer", 100000)])

    def test_it_runs_as_a_job_and_estimates_pi(self):
        environment = dict(os.environ, XDG_STATE_HOME=os.path.join(self.folder, "state"))
        logs = os.path.join(self.folder, "logs")
        run(DTJ, "run", "-f", os.path.join(SOURCES, "job.yaml"), "--worker", self.worker, "--log-dir", logs,
            env=environment)
        text = ""
        for root, _, names in os.walk(logs):
            for name in names:
                with open(os.path.join(root, name), encoding="utf-8") as file:
                    text += file.read()
        (line,) = [json.loads(line) for line in text.splitlines() if '"estimated"' in line]
        # 2 million points: four standard deviations are 0.005.
        self.assertAlmostEqual(line["pi"], 3.14159, delta=0.005)


if __name__ == "__main__":
    unittest.main()
