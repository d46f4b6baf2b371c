"""Python's websockets, as a peer of foreign_test.go:

    peer.py server MODE       echoes on a port that it prints, until its input ends
    peer.py client MODE URL   has messages echoed, and closes with code 4000
"""

import asyncio
import random
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed
from websockets.extensions.permessage_deflate import (
    ClientPerMessageDeflateFactory,
    ServerPerMessageDeflateFactory,
)

PARAMETERS = {
    "takeover": {},
    "no-takeover": {"server_no_context_takeover": True, "client_no_context_takeover": True},
    "small": {"server_max_window_bits": 9, "client_max_window_bits": 9},
}


def extensions(factory, mode):
    return None if mode == "none" else [factory(**PARAMETERS[mode])]


def messages():
    r = random.Random(1)
    for n in (0, 1, 125, 126, 1000, 4096, 65535, 65536, 300000):
        yield ("κόσμε" * n)[: n // 2]
        yield r.randbytes(n)
        yield b"ab" * (n // 2)


async def echo(c):
    try:
        async for m in c:
            await c.send(m)
    except ConnectionClosed:
        pass  # with code 4000


async def server(mode):
    made = extensions(ServerPerMessageDeflateFactory, mode)
    async with serve(echo, "127.0.0.1", 0, compression=None, extensions=made) as s:
        print(s.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def client(mode, url):
    made = extensions(ClientPerMessageDeflateFactory, mode)
    async with connect(url, compression=None, extensions=made) as c:
        if bool(c.protocol.extensions) != (mode != "none"):
            sys.exit(f"negotiated {c.protocol.extensions}")
        for m in messages():
            await c.send(m)
            got = await c.recv()
            if got != m:
                sys.exit(f"a message of {len(m)} came back as one of {len(got)}")
        await c.close(4000, "bye")
        if c.close_code != 4000:
            sys.exit(f"closed with {c.close_code}")


asyncio.run({"server": server, "client": client}[sys.argv[1]](*sys.argv[2:]))
