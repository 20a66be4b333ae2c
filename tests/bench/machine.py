# SPDX-License-Identifier: Apache-2.0
"""Says on what and with what was measured."""

import os
import platform
import subprocess

# Of requirements.txt, by the names that people know them by.
PACKAGES = {"PyTorch": "torch", "Ray": "ray", "Monarch": "torchmonarch", "Gymnasium": "gymnasium"}


def _output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    with open("/etc/os-release", encoding="utf-8") as file:
        system = next(line.split("=", 1)[1].strip().strip('"') for line in file
                      if line.startswith("PRETTY_NAME="))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"{os.cpu_count()} × {models[0] if models else platform.machine()}, {memory:.0f} GiB, "
            f"{system}, Linux {platform.release()}")


def versions(source_dir, peers_python):
    commit = _output("git", "-C", source_dir, "rev-parse", "--short", "HEAD")
    compiler = _output("c++", "--version").splitlines()[0]
    grpc = _output("pkg-config", "--modversion", "grpc++")
    found = [f"disttrain at {commit}", compiler, f"gRPC {grpc}"]
    if peers_python:
        program = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
        numbers = _output(peers_python, "-c", program, *PACKAGES.values()).split()
        found += [f"{name} {number}" for name, number in zip(PACKAGES, numbers)]
        found.append(_output(peers_python, "--version"))
    return ", ".join(found)
