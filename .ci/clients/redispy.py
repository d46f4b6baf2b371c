"""Drives a Redis server through redis-py, as programs do.

The server is a process that was started before: RONDO_ADDR is its address,
host:port or the path of a unix socket, and RONDO_PASSWORD its password if it
has one. Its keys are lost. It is started with an empty configuration; that is
restored where a check changes it.

    RONDO_ADDR=127.0.0.1:6379 python redispy.py

Every check runs with RESP2 and with RESP3. The exit status is 1 when one
fails. With --shutdown there is one check only: SHUTDOWN ends the server, beside a script
that is busy.
"""

import asyncio
import contextlib
import hashlib
import os
import sys
import threading
import time
import traceback

import redis
import redis.asyncio
import redis.asyncio.retry
import redis.backoff
import redis.cache
import redis.connection
import redis.retry

PATIENCE = 60  # seconds that anything may take on a loaded machine before it counts as stuck


def options(protocol, **more):
    address = os.environ["RONDO_ADDR"]
    o = {
        "password": os.environ.get("RONDO_PASSWORD") or None,
        "protocol": protocol,
        "socket_timeout": PATIENCE,
        "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0),  # an error is to be seen
    }
    if address.startswith("/"):
        o["unix_socket_path"] = address
    else:
        host, _, port = address.rpartition(":")
        o["host"], o["port"] = host.strip("[]"), int(port)
    return o | more


def asyncio_options(protocol):
    return options(protocol) | {"retry": redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 0)}


def connect(protocol, **more):
    return redis.Redis(**options(protocol, **more))


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def between(low, got, high):
    if not low <= got <= high:
        raise AssertionError(f"got {got!r}, want {low!r} to {high!r}")


def fails(kind, text, function, *args):
    """Checks that a call raises an error of a kind that says text."""
    try:
        got = function(*args)
    except kind as err:
        if text not in str(err):
            raise AssertionError(f"error {err!r}, want {text!r}") from err
        return
    raise AssertionError(f"got {got!r}, want {kind.__name__}: {text}")


def eventually(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not happen")
        time.sleep(0.005)


def in_threads(count, function):
    """Runs function(0) to function(count-1) at once and raises what one raised."""
    errors = []

    def run(i):
        try:
            function(i)
        except Exception as err:  # to be raised by the thread that waits
            errors.append(err)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def strings(r, protocol):
    equal(r.set("k", "v1"), True)
    equal(r.get("k"), b"v1")
    equal(r.getset("k", "v2"), b"v1")
    equal(r.setnx("k", "v3"), False)
    equal(r.set("k", "v3", nx=True), None)
    equal(r.set("k", "v3", xx=True), True)
    equal(r.set("none", "v", xx=True), None)
    equal(r.set("k", "v4", get=True), b"v3")
    equal(r.append("k", "more"), 6)
    equal(r.strlen("k"), 6)
    equal(r.getdel("k"), b"v4more")
    equal(r.get("k"), None)
    equal(r.mset({"a": "1", "b": "", "c": b"\x00\r\n\xff"}), True)
    equal(r.mget("a", "b", "c", "none"), [b"1", b"", b"\x00\r\n\xff", None])


def counters(r, protocol):
    equal(r.incr("n"), 1)
    equal(r.incrby("n", 10), 11)
    equal(r.decr("n"), 10)
    equal(r.decrby("n", 20), -10)
    r.set("text", "x")
    fails(redis.ResponseError, "value is not an integer or out of range", r.incr, "text")
    r.set("max", 2**63 - 1)
    fails(redis.ResponseError, "increment or decrement would overflow", r.incr, "max")
    in_threads(8, lambda _: [r.incr("shared") for _ in range(100)])
    equal(r.get("shared"), b"800")


def keys(r, protocol):
    r.mset({"one": 1, "two": 2, "three": 3})
    equal(r.type("one"), b"string")
    equal(r.type("zero"), b"none")
    equal(r.dbsize(), 3)
    equal(r.exists("one", "one", "two", "zero"), 3)
    equal(sorted(r.keys("t*")), [b"three", b"two"])
    equal(r.delete("one", "zero"), 1)
    equal(r.unlink("two", "three"), 2)
    equal(r.dbsize(), 0)


def expiry(r, protocol):
    r.set("k", "v", ex=3600)
    between(3500, r.ttl("k"), 3600)
    between(3500_000, r.pttl("k"), 3600_000)
    r.set("k", "v", keepttl=True)
    between(3500, r.ttl("k"), 3600)
    equal(r.persist("k"), True)
    equal(r.ttl("k"), -1)
    equal(r.ttl("none"), -2)
    equal(r.expire("k", 60), True)
    equal(r.expire("k", 30, gt=True), False)
    equal(r.getex("k", exat=int(time.time()) + 7200), b"v")
    between(7100, r.ttl("k"), 7200)
    for i in range(100):
        r.set(f"short:{i}", "v", px=50)
    equal(r.pexpire("k", 50), True)
    eventually(lambda: r.dbsize() == 0)  # also those that nobody asks for
    equal(r.exists("k"), 0)


def scan(r, protocol):
    with r.pipeline(transaction=False) as pipe:
        for i in range(1000):
            pipe.set(f"even:{2 * i}", i).set(f"odd:{2 * i + 1}", i)
        pipe.execute()
    for count in (None, 1, 100, 10000):
        seen = set()
        for key in r.scan_iter("even:*", count=count):
            seen.add(key)
            if len(seen) % 10 == 0:  # keys that come and go must not disturb those that stay
                r.delete(f"odd:{len(seen) + 1}")
                r.set(f"late:{len(seen)}", "")
        equal(seen, {f"even:{2 * i}".encode() for i in range(1000)})
    equal(list(r.scan_iter("*", _type="LIST")), [])


def big_values(r, protocol):
    value = os.urandom(1 << 20) * 64
    digest = hashlib.sha256(value).digest()
    equal(r.set("big", value), True)
    equal(hashlib.sha256(r.get("big")).digest(), digest)
    equal(r.append("big", "end"), len(value) + 3)
    got = r.getdel("big")
    equal(hashlib.sha256(got[:-3]).digest(), digest)
    equal(got[-3:], b"end")
    equal(r.ping(), True)


def pipelines(r, protocol):
    with r.pipeline(transaction=False) as pipe:
        for i in range(5000):
            pipe.set(f"k{i}", i).get(f"k{i}")
        replies = pipe.execute()
    equal(replies[0::2], [True] * 5000)
    equal(replies[1::2], [str(i).encode() for i in range(5000)])

    with r.pipeline(transaction=False) as pipe:  # an error is its own command's alone
        replies = pipe.set("text", "x").incr("text").get("text").execute(raise_on_error=False)
    equal([replies[0], replies[2]], [True, b"x"])
    equal(str(replies[1]), "value is not an integer or out of range")


def transactions(r, protocol):
    with r.pipeline() as pipe:
        equal(pipe.set("k", 1).incr("k").get("none").execute(), [True, 2, None])
    with r.pipeline() as pipe:  # what fails as it runs does not undo the others
        replies = pipe.set("text", "x").incr("text").set("after", 1).execute(raise_on_error=False)
    equal([replies[0], replies[2]], [True, True])
    equal(isinstance(replies[1], redis.ResponseError), True)
    with r.pipeline() as pipe:  # what cannot be queued spoils the whole
        pipe.set("after", 2).execute_command("NOSUCHCOMMAND")
        fails(redis.ResponseError, "unknown command 'NOSUCHCOMMAND'", pipe.execute)
    equal(r.get("after"), b"1")


def watch(r, protocol):
    retries = []

    def increments(_):
        for _ in range(50):
            while True:
                with r.pipeline() as pipe:
                    try:
                        pipe.watch("n")
                        n = int(pipe.get("n") or 0)
                        pipe.multi()
                        pipe.set("n", n + 1)
                        pipe.execute()
                        break
                    except redis.WatchError:
                        retries.append(1)

    in_threads(8, increments)
    equal(r.get("n"), b"400")
    with r.pipeline() as pipe:  # one that must fail, whatever the scheduling
        pipe.watch("n")
        r.set("n", "other")
        pipe.multi()
        pipe.set("n", "mine")
        fails(redis.WatchError, "", pipe.execute)
    equal(r.get("n"), b"other")
    r.delete("n")
    r.transaction(lambda pipe: (pipe.multi(), pipe.set("n", 1)), "n")
    equal(r.get("n"), b"1")


def pubsub(r, protocol):
    def message(p):
        return p.get_message(timeout=PATIENCE)

    def event(kind, pattern, channel, data):
        return {"type": kind, "pattern": pattern, "channel": channel, "data": data}

    with contextlib.closing(r.pubsub()) as p:
        p.subscribe("news", "weather")
        equal(message(p), event("subscribe", None, b"news", 1))
        equal(message(p), event("subscribe", None, b"weather", 2))
        p.psubscribe("n?ws*")
        equal(message(p), event("psubscribe", None, b"n?ws*", 3))
        equal(r.publish("news", "hello"), 2)
        equal(message(p), event("message", None, b"news", b"hello"))
        equal(message(p), event("pmessage", b"n?ws*", b"news", b"hello"))
        equal(r.publish("sport", "nobody"), 0)
        equal(sorted(r.pubsub_channels()), [b"news", b"weather"])
        equal(r.pubsub_numsub("news", "sport"), [(b"news", 1), (b"sport", 0)])
        equal(r.pubsub_numpat(), 1)
        p.ping("still there")
        equal(message(p), event("pong", None, None, b"still there"))
        p.unsubscribe("weather")
        equal(message(p), event("unsubscribe", None, b"weather", 2))
        p.punsubscribe()
        equal(message(p), event("punsubscribe", None, b"n?ws*", 1))
    eventually(lambda: r.publish("news", "") == 0)


def name_of(c):
    name = c.client_getname()
    return name.decode() if isinstance(name, bytes) else name


def hello(r, protocol):
    with contextlib.closing(connect(protocol, single_connection_client=True)) as c:
        for version in range(2, protocol + 1):  # redis-py reads no newer one than it asked for
            got = c.execute_command("HELLO", version, "SETNAME", "tester")
            if version == 2:
                got = dict(zip(got[0::2], got[1::2]))
            equal([got[b"server"], got[b"proto"], got[b"role"]], [b"redis", version, b"master"])
        equal(name_of(c), "tester")
        fails(redis.ResponseError, "NOPROTO", c.execute_command, "HELLO", 4)
        config = c.config_get("maxmemory")
        equal(list(config), ["maxmemory"])


def databases(r, protocol):
    with contextlib.closing(connect(protocol, db=15)) as other:
        r.set("k", "0")
        other.set("k", "15")
        equal([r.get("k"), other.get("k")], [b"0", b"15"])
        r.flushdb()
        equal(other.dbsize(), 1)
        r.flushall()
        equal(other.dbsize(), 0)
    fails(redis.ResponseError, "DB index is out of range", r.execute_command, "SELECT", 16)


def client_commands(r, protocol):
    with contextlib.closing(connect(protocol, client_name="named", single_connection_client=True)) as c:
        equal(name_of(c), "named")
        number = c.client_id()
        listed = [entry for entry in r.client_list() if entry["id"] == str(number)]
        equal([entry["name"] for entry in listed], ["named"])
        equal(c.client_info()["name"], "named")
        equal(c.client_setname("renamed"), True)
        equal(name_of(c), "renamed")


def server(r, protocol):
    equal(r.ping(), True)
    equal(r.echo("hi"), b"hi")
    info = r.info()
    between("7.", info["redis_version"], "8")
    between(1, info["connected_clients"], 100)
    get = r.command()["get"]
    equal([get["arity"], get["first_key_pos"], "readonly" in get["flags"]], [2, 1, True])
    between(50, r.command_count(), 1000)


def auth(r, protocol):
    denied = redis.AuthenticationError
    with contextlib.closing(connect(protocol, single_connection_client=True)) as admin:
        before = os.environ.get("RONDO_PASSWORD", "")
        admin.config_set("requirepass", "sesame")
        try:
            for user, password, kind, text in (
                (None, None, denied, "Authentication required." if protocol == 2 else "already authenticated"),
                (None, "wrong", denied, "invalid username-password pair or user is disabled."),
                ("nobody", "sesame", denied, "invalid username-password pair or user is disabled."),
                (None, "sesame", None, None),
                ("default", "sesame", None, None),
            ):
                with contextlib.closing(connect(protocol, username=user, password=password)) as c:
                    if kind:
                        fails(kind, text, c.get, "none")
                    else:
                        equal(c.get("none"), None)
        finally:
            admin.config_set("requirepass", before)


def many_clients(r, protocol):
    def work(i):
        with contextlib.closing(connect(protocol)) as own:
            for n in range(20):
                own.set(f"client:{i}", n)
                equal(own.get(f"client:{i}"), str(n).encode())

    in_threads(50, work)
    equal(r.dbsize(), 50)


def client_side_caching(r, protocol):
    if protocol == 2:
        return  # redis-py caches with RESP3 only
    # redis-py wants a later version of Redis than 7.0, for no reason that this check knows.
    redis.connection.CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"
    with contextlib.closing(connect(protocol, cache_config=redis.cache.CacheConfig())) as c:
        for n in range(50):
            r.set("k", n)
            r.hset("h", "f", n)
            eventually(lambda: c.get("k") == str(n).encode() and c.hget("h", "f") == str(n).encode())
            before = r.info("commandstats")["cmdstat_get"]["calls"]
            for _ in range(20):
                equal(c.get("k"), str(n).encode())
            equal(r.info("commandstats")["cmdstat_get"]["calls"], before)  # all were kept
        equal(c.mget("k", "none"), [b"49", None])
        r.flushall()
        eventually(lambda: c.get("k") is None)
        r.set("k", "short", px=50)
        eventually(lambda: c.get("k") is None)
        between(1, r.info("clients")["tracking_clients"], 2)


def with_asyncio(r, protocol):
    async def work():
        async with redis.asyncio.Redis(**asyncio_options(protocol)) as c:
            got = await asyncio.gather(*(c.incr("n") for _ in range(100)))
            equal(sorted(got), list(range(1, 101)))
            async with c.pipeline(transaction=True) as pipe:
                equal(await pipe.set("k", "v").get("k").execute(), [True, b"v"])
            async with c.pubsub() as p:
                await p.psubscribe("a*")
                equal((await p.get_message(timeout=PATIENCE))["type"], "psubscribe")
                equal(await c.publish("abc", "hi"), 1)
                equal((await p.get_message(timeout=PATIENCE))["data"], b"hi")

    asyncio.run(work())


CHECKS = (
    strings, counters, keys, expiry, scan, big_values, pipelines, transactions, watch, pubsub,
    hello, databases, client_commands, server, auth, many_clients, client_side_caching,
    with_asyncio,
)


def shutdown():
    """Ends the server while a script is busy, which SCRIPT KILL must not end."""
    with contextlib.closing(connect(2)) as r, contextlib.closing(connect(2)) as other:
        r.config_set("busy-reply-threshold", 1)

        def busy():
            with contextlib.suppress(redis.exceptions.RedisError):  # the end of the connection
                other.eval("redis.call('SET', 'k', 'v') while true do end", 0)

        script = threading.Thread(target=busy)
        script.start()
        while not refused(r.ping, "BUSY"):
            time.sleep(0.01)
        for arguments in ({}, {"save": True}, {"force": True, "now": True}):
            equal(refused(lambda: r.shutdown(**arguments), "BUSY"), True)
        r.shutdown(nosave=True)  # raises an exception if there is a reply
        script.join(PATIENCE)
        equal(script.is_alive(), False)


def refused(call, code):
    """Tells whether a call ends with an error that has a text in the beginning."""
    try:
        call()
    except redis.exceptions.ResponseError as error:
        return str(error).startswith(code)
    return False


def main():
    if sys.argv[1:] == ["--shutdown"]:
        shutdown()
        return 0
    failed = 0
    for protocol in (2, 3):
        for check in CHECKS:
            name = f"{check.__name__}, RESP{protocol}"
            start = time.monotonic()
            try:
                with contextlib.closing(connect(protocol)) as r:
                    r.flushall()
                    check(r, protocol)
            except Exception:  # the others are to run all the same
                failed += 1
                print(f"FAIL {name}\n{traceback.format_exc()}")
            else:
                print(f"ok   {name} ({time.monotonic() - start:.2f} s)")
    print(f"redis-py {redis.__version__}: {failed} of {2 * len(CHECKS)} checks failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
