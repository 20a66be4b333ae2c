# SPDX-License-Identifier: Apache-2.0
"""Bad manifests: exit status 2, the field's path, and no process started."""

import unittest

from harness import DtjTest

HEAD = """apiVersion: disttrain.dev/v1alpha1
kind: DistTrainingJob
metadata: {name: NAME}
spec:
"""
GOOD = HEAD + """  program: reinforce
  roles:
  - {name: agent}
  - {name: observer, replicas: 2}
"""
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))

# what is wrong: (manifest, what standard error must name)
BAD = {
    "an unknown program": (GOOD.replace("reinforce", "reinforze"), ["spec.program", "reinforze", "reinforce"]),
    "an unknown role": (GOOD.replace("observer", "observes"), ["observes", "observer"]),
    "an unknown field": (GOOD.replace("replicas: 2", "replcas: 2"), ["spec.roles[1].replcas", "replicas"]),
    "an unknown parameter": (GOOD + "  parameters: {gama: 0.9}\n", ["spec.parameters.gama", "gamma"]),
    "a parameter of the wrong type": (GOOD + "  parameters: {gamma: high}\n", ["spec.parameters.gamma", "high"]),
    "a field of the wrong type": (GOOD.replace("replicas: 2", "replicas: two"), ["spec.roles[1].replicas", "two"]),
    "two roles of one name": (GOOD.replace("name: agent", "name: observer"), ["spec.roles[1].name", "observer"]),
    "zero replicas": (GOOD.replace("replicas: 2", "replicas: 0"), ["spec.roles[1].replicas", "0"]),
    "a name of 41 characters": (GOOD.replace("NAME", "a" * 41), ["metadata.name", "41"]),
    "a YAML bomb": (BOMB, ["alias"]),
    "an empty file": ("", ["empty"]),
    "no roles": (HEAD + "  program: reinforce\n", ["spec.roles"]),
    "another kind": (GOOD.replace("DistTrainingJob", "Deployment"), ["kind", "Deployment"]),
    "another version": (GOOD.replace("v1alpha1", "v2"), ["apiVersion", "v2"]),
    "no YAML": ("{[", ["line 1"]),
    "a driver role that is missing": (HEAD + "  program: reinforce\n  roles: [{name: observer}]\n", ["agent"]),
    "a reserved variable": (GOOD.replace(
        "{name: agent}", "{name: agent, template: {spec: {containers: [{name: w, env: [{name: RANK, value: '1'}]}]}}}"),
        ["spec.roles[0].template.spec.containers[0].env", "RANK"]),
    "what is not acted on yet": (GOOD.replace("replicas: 2", "replicas: 2, elastic: {minReplicas: 1, maxReplicas: 2}"),
                                 ["spec.roles[1].elastic", "not supported"]),
}


class BadManifest(DtjTest):

    def test_each_is_refused_with_exit_status_2_and_the_path_of_the_field(self):
        for what, (text, named) in BAD.items():
            for command in ("run", "validate"):
                with self.subTest(what=what, command=command):
                    path = self.file("job.yaml", text.replace("NAME", self.job))
                    code, output, errors = self.dtj(command, "-f", path)
                    self.assertEqual(code, 2, output + errors)
                    for name in named:
                        self.assertIn(name, output + errors)
        self.assertEqual(self.ranks(), [])

    def test_a_file_that_does_not_exist_is_named(self):
        code, _, errors = self.dtj("run", "-f", "/no/such/file.yaml")
        self.assertEqual(code, 2)
        self.assertIn("/no/such/file.yaml", errors)

    def test_the_sample_that_must_be_refused_is_refused(self):
        self.assertEqual(self.dtj("validate", "-f", "manifests/illegal.yaml")[0], 2)

    def test_the_samples_that_run_are_valid(self):
        code, output, errors = self.dtj("validate", "-f", "manifests/cartpole.yaml")
        self.assertEqual(code, 0, output + errors)


if __name__ == "__main__":
    unittest.main()
