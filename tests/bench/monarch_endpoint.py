# SPDX-License-Identifier: Apache-2.0
"""An endpoint of a Monarch actor in a process of its own, with a torch tensor there and back.

monarch_endpoint.py     (any argument is ignored: Monarch chooses how the bytes travel)
"""

import os

import torch
from monarch.actor import Actor, endpoint, shutdown_context, this_host

from serve import serve


class Echo(Actor):

    @endpoint
    async def same(self, values):
        return values

    @endpoint
    async def process(self):
        return os.getpid()


def main():
    torch.set_num_threads(1)
    processes = this_host().spawn_procs()
    try:
        echo = processes.spawn("echo", Echo)

        def prepare(floats):
            values = torch.ones(floats)
            return lambda: echo.same.call_one(values).get

        serve(prepare, echo.process.call_one().get())
        processes.stop().get()
    finally:
        shutdown_context().get()


if __name__ == "__main__":
    main()
