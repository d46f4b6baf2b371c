"""redis-py's Lock, and pottery's Redlock.

    python locks.py features ADDRESS                  looks at what locks do
    python locks.py contend ADDRESS FILE N            counts to N in a file, in turns with others
    python locks.py hold ADDRESS NAME                 takes a lock for a short time, and waits
    python locks.py after ADDRESS NAME                takes that lock when its time is over
    python locks.py redlock ADDRESS,... FILE N        as contend, by most of the servers
    python locks.py redlock ADDRESS,... FILE refused  wants no lock
"""

import pathlib
import sys
import time

import redis
import redis.exceptions

from world import PATIENCE, equal


def connect(address):
    host, _, port = address.rpartition(":")
    return redis.Redis(host=host, port=int(port))


def raises(kind, function, *args, **named):
    try:
        got = function(*args, **named)
    except kind:
        return
    raise AssertionError(f"got {got!r}, want {kind.__name__}")


def features(address):
    r = connect(address)
    lock = r.lock("l", timeout=100)
    equal(lock.locked(), False)
    with lock:
        equal((lock.locked(), lock.owned()), (True, True))
        other = r.lock("l", timeout=100)
        equal((other.locked(), other.owned()), (True, False))
        equal(other.acquire(blocking=False), False)
        equal(other.acquire(blocking_timeout=0.2), False)
        raises(redis.exceptions.LockError, other.release)
    equal(r.exists("l"), 0)

    # Extended and renewed.
    lock = r.lock("l", timeout=10)
    lock.acquire()
    lock.extend(90)
    equal(90_000 < r.pttl("l") <= 100_000, True)
    lock.extend(50, replace_ttl=True)
    equal(40_000 < r.pttl("l") <= 50_000, True)
    lock.reacquire()
    equal(0 < r.pttl("l") <= 10_000, True)
    lock.release()
    raises(redis.exceptions.LockError, r.lock("l").extend, 1)

    # A lock that is over is its owner's no more, once another has it or not.
    short = r.lock("short", timeout=0.2)
    short.acquire()
    following = r.lock("short", timeout=100)
    equal(following.acquire(blocking_timeout=PATIENCE), True)
    equal(short.owned(), False)
    raises(redis.exceptions.LockNotOwnedError, short.reacquire)
    raises(redis.exceptions.LockNotOwnedError, short.release)
    equal(following.owned(), True)
    following.release()
    print("taken, refused, extended, renewed, expired")


def increment(counter):
    """Counts one in a file. Only a lock keeps others from doing it at the same time."""
    n = int(counter.read_text())
    time.sleep(0.001)
    counter.write_text(str(n + 1))


def contend(address, counter, times):
    r = connect(address)
    for _ in range(int(times)):
        with r.lock("contended", timeout=PATIENCE, sleep=0.002):
            increment(pathlib.Path(counter))


def hold(address, name):
    connect(address).lock(name, timeout=1.5).acquire()
    print(name, flush=True)
    time.sleep(PATIENCE)


def after(address, name):
    lock = connect(address).lock(name, timeout=100)
    equal(lock.acquire(blocking_timeout=PATIENCE), True)
    lock.release()
    print("a killed process's lock ended with its time")


def redlock(addresses, counter, times):
    import pottery

    masters = {connect(address) for address in addresses.split(",")}
    if times == "refused":
        lock = pottery.Redlock(key="refused", masters=masters, auto_release_time=10, num_extensions=1)
        try:
            equal(lock.acquire(blocking=True, timeout=1), False)
        except pottery.QuorumNotAchieved:
            pass
        return
    for _ in range(int(times)):
        # pottery goes on as soon as most servers have answered: what it asked of the others may
        # come to them after the release, and keeps their share of the lock until its time ends.
        lock = pottery.Redlock(key="counter", masters=masters, auto_release_time=20)
        lock.acquire()
        increment(pathlib.Path(counter))
        try:
            lock.release()
        except pottery.ReleaseUnlockedLock as error:
            # Of a lock that three servers gave, one may be dead by now. The others still refuse
            # it to everybody else: what it guards was guarded.
            if not error.redis_errors:
                raise


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"features": features, "contend": contend, "hold": hold, "after": after, "redlock": redlock}[command](*arguments)
