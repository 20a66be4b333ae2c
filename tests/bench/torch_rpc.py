# SPDX-License-Identifier: Apache-2.0
"""torch's own RPC (TensorPipe) from Python: rpc_async of a Python function.

torch_rpc.py tcp     (its peer: torch_rpc.py --peer PORT)
"""

import os
import socket
import subprocess
import sys

import torch
import torch.distributed.rpc as rpc

from serve import serve

# TensorPipe chooses its transport itself: shared memory within a machine, unless it is told.
OPTIONS = {"tcp": ["uv"], "unix": ["shm"]}


def echo(values):
    return values


def join(name, rank, port, transport):
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method=f"tcp://127.0.0.1:{port}", _transports=OPTIONS[transport]))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "--peer":
        join("peer", 1, int(sys.argv[2]), sys.argv[3])
        rpc.shutdown()  # waits for the caller's
        return
    port = free_port()
    peer = subprocess.Popen([sys.executable, "-B", "-W", "ignore", os.path.abspath(__file__), "--peer",
                             str(port), sys.argv[1]])
    join("caller", 0, port, sys.argv[1])

    def prepare(floats):
        values = torch.ones(floats)
        # rpc_sync is this and no more.
        return lambda: rpc.rpc_async("peer", echo, args=(values,), timeout=60).wait

    serve(prepare, peer.pid)
    rpc.shutdown()
    peer.wait()


if __name__ == "__main__":
    main()
