# SPDX-License-Identifier: Apache-2.0
"""A method of a Ray actor, with a numpy array as argument and result.

ray_actor.py     (any argument is ignored: Ray chooses how the bytes travel)

Ray's own processes (gcs_server, raylet and what they start) run beside both ends.
"""

import os
import tempfile

# No report goes out; read when ray is imported.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import numpy
import ray

from serve import serve

# Four payloads of 64 MiB and room.
OBJECT_STORE_BYTES = 1 << 30


@ray.remote
class Echo:

    def same(self, values):
        return values

    def process(self):
        return os.getpid()


def main():
    with tempfile.TemporaryDirectory(prefix="disttrain-bench-") as folder:
        ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False,
                 logging_level="error", object_store_memory=OBJECT_STORE_BYTES, _temp_dir=folder,
                 _node_ip_address="127.0.0.1")
        try:
            echo = Echo.remote()

            def prepare(floats):
                values = numpy.ones(floats, dtype=numpy.float32)

                def start():
                    answer = echo.same.remote(values)
                    return lambda: ray.get(answer)
                return start

            serve(prepare, ray.get(echo.process.remote()))
        finally:
            ray.shutdown()


if __name__ == "__main__":
    main()
