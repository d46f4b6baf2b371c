"""Runs job queues and locks, each as real processes, on a Redis server, and kills workers.

    python jobs.py --server './rondo redis --addr tcp://127.0.0.1:{port}' [--jobs 10000] [NAME ...]
    python jobs.py --server 'redis-server --port {port} --save ""'

--server is the command of the server under test; {port} stands where its port goes. It may be
given several times. Each application has servers of its own. The names are those of APPLICATIONS; without one, all are
run. --jobs is the number of jobs in BullMQ's and asynq's queues; slower ones have fewer.

The programs are found so: Python's packages in this Python, Node's by NODE_PATH, Ruby's by
ruby and sidekiq, Go's in ASYNQ, the program built in the directory asynq. The exit status is
1 when a check fails. Each wait is for a count; nothing is expected within a time.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import traceback

from world import HERE, Killer, Ledger, World, equal, eventually

KILLS = 8


def loses_none(world, server, command, total, check, produce, strike=Killer.replace, idle=None):
    """Has workers do jobs while others are added, and kills workers meanwhile, as strike does.
    Any job that is not done is lost; one that is done twice is not."""
    with contextlib.closing(Ledger(world.work / "ledger")) as ledger:

        numbers = itertools.count()

        def start():
            # Celery's workers need names.
            named = [str(part).replace("NUMBER", str(next(numbers))) for part in command]
            return world.start(*named, REDIS_URL=server.url, LEDGER=str(ledger.path))

        with contextlib.closing(Killer(world, ledger, start, total)) as killer:
            producer = world.start(*produce, total, REDIS_URL=server.url)
            killer.work(KILLS, strike, idle)
            world.ends_well(producer)
            killer.finish(world.start(*check, total, REDIS_URL=server.url), idle)
        equal(set(ledger.read().ended), {str(i) for i in range(total)})
        return f"{total} jobs, {killer.kills} processes ended, {ledger.again()} jobs begun again, none lost"


def bullmq(world, jobs):
    node = ["node", HERE / "bullmq.js"]
    server = world.server()
    workers = [world.start(*node, "worker", "features", REDIS_URL=server.url) for _ in range(2)]
    world.start(*node, "worker", "limited", REDIS_URL=server.url)
    yield world.run(*node, "features", REDIS_URL=server.url)
    for worker in workers:
        world.still_running(worker)
    server.client().flushall()
    yield loses_none(world, world.server(), [*node, "worker", "count"], jobs, [*node, "check"], [*node, "produce"])


def asynq(world, jobs):
    program = os.environ["ASYNQ"]
    server = world.server()
    # The leases of the dead end after 30 s, and are looked for 30 s later by servers that
    # begin, and once a minute.
    seconds = itertools.count(1)

    def idle(killer):
        if next(seconds) % 5 == 0:
            killer.replace()

    yield loses_none(world, server, [program, "worker"], jobs, [program, "check"], [program, "produce"], idle=idle)
    server = world.server()
    workers = [world.start(program, "worker", REDIS_URL=server.url) for _ in range(2)]
    yield world.run(program, "features", REDIS_URL=server.url)
    for worker in workers:
        world.still_running(worker)


def rq(world, jobs):
    server = world.server()
    work = [sys.executable, "-m", "rq.cli", "worker", "--quiet", "--url", server.url]
    workers = [world.start(*work, "--with-scheduler", "features") for _ in range(2)]
    yield world.python(HERE / "rq_app.py", "features", REDIS_URL=server.url)
    for worker in workers:
        world.still_running(worker)

    app = [sys.executable, HERE / "rq_app.py"]

    def idle(killer):
        # Living workers would look for what the dead had begun minutes later.
        if server.client().llen("rq:queue:count") == 0:
            killer.without_workers(lambda: world.run(*app, "recover", REDIS_URL=server.url))

    yield loses_none(world, server, [*work, "count"], jobs // 20, [*app, "check"], [*app, "produce"], idle=idle)


def celery(world, jobs):
    server = world.server()
    app = [sys.executable, "-m", "celery", "-A", "celery_app"]
    work = [*app, "worker", "-l", "WARNING", "-c", "2", "-Q"]
    workers = [world.start(*work, "features", "-n", f"{n}@%h", REDIS_URL=server.url) for n in range(2)]
    beat = world.start(*app, "beat", "-l", "WARNING", "-s", world.work / "beat", REDIS_URL=server.url)
    yield world.python(HERE / "celery_app.py", "features", REDIS_URL=server.url)
    for process in [*workers, beat]:
        world.still_running(process)
        world.terminate(process)
    drive = [sys.executable, HERE / "celery_app.py"]
    # Celery takes a message from the list before it notes that, and loses it if it is killed
    # between the two. It promises to do again what its pool's processes had begun.
    yield loses_none(
        world,
        world.server(),
        [*work, "count", "-n", "NUMBER@%h"],
        jobs // 5,
        [*drive, "check"],
        [*drive, "produce"],
        strike=Killer.kill_below,
    )


def sidekiq(world, jobs):
    """Sidekiq itself says that it loses what a killed worker had begun: here workers are told to
    end, and put that back."""
    server = world.server()
    app = HERE / "sidekiq_app.rb"
    work = ["sidekiq", "-r", app, "-c", "5", "-t", "1", "-e", "production"]
    workers = [world.start(*work, "-q", "features", REDIS_URL=server.url) for _ in range(2)]
    yield world.run("ruby", app, "features", REDIS_URL=server.url)
    for worker in workers:
        world.still_running(worker)
        world.terminate(worker)
    drive = ["ruby", app]
    work += ["-q", "count"]
    yield loses_none(
        world,
        world.server(),
        work,
        jobs // 5,
        [*drive, "check"],
        [*drive, "produce"],
        strike=lambda killer: killer.replace(world.terminate),
    )


def locks(world, _):
    server = world.server()
    yield world.python(HERE / "locks.py", "features", server.address)
    counter = world.work / "counter"
    counter.write_text("0")
    contenders = [
        world.start(sys.executable, HERE / "locks.py", "contend", server.address, counter, 200) for _ in range(4)
    ]
    for contender in contenders:
        world.ends_well(contender)
    equal(counter.read_text(), "800")
    yield "800 turns of 4 processes under one lock"
    holder = world.start(sys.executable, HERE / "locks.py", "hold", server.address, "held")
    eventually("a held lock", lambda: holder.log.read_text() == "held\n")
    world.kill(holder)
    yield world.python(HERE / "locks.py", "after", server.address, "held")


def redlock(world, _):
    """Five servers, of which two die meanwhile; then a third."""
    for name, command in {
        "redsync": [os.environ["ASYNQ"], "redlock"],
        "pottery": [sys.executable, HERE / "locks.py", "redlock"],
    }.items():
        servers = [world.server() for _ in range(5)]
        addresses = ",".join(s.address for s in servers)
        counter = world.work / f"counter-{name}"
        counter.write_text("0")
        contenders = [world.start(*command, addresses, counter, 60) for _ in range(3)]
        for n, dying in enumerate(servers[:2]):
            eventually("turns", lambda: int(counter.read_text() or 0) >= 50 * (n + 1))
            dying.kill()
        for contender in contenders:
            world.ends_well(contender)
        equal(counter.read_text(), "180")
        servers[2].kill()
        world.run(*command, addresses, counter, "refused")
        yield f"{name}: 180 turns of 3 processes, 2 of 5 servers killed; refused without a third"


APPLICATIONS = {
    "asynq": asynq,
    "celery": celery,
    "bullmq": bullmq,
    "rq": rq,
    "sidekiq": sidekiq,
    "locks": locks,
    "redlock": redlock,
}
worlds = []
printing = threading.Lock()


def passes(name, number, options, work):
    start = time.monotonic()
    label = f"{name}, server {number + 1}" if len(options.server) > 1 else name
    world = World(label, options.server[number], work)
    worlds.append(world)
    try:
        try:
            for result in APPLICATIONS[name](world, options.jobs):
                with printing:
                    print(f"ok   {label}: {result.strip()} ({time.monotonic() - start:.1f} s)", flush=True)
        finally:
            world.end()
    except Exception:  # the others are to run all the same
        with printing:
            print(f"FAIL {label}: {traceback.format_exc()}\n{world.tail()}", flush=True)
        return False
    return True


def interrupted(*_):
    for world in worlds:
        for process in world.processes:
            world.kill(process)
        for server in world.servers:
            server.kill()
    os._exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True, action="append", help="command of the server, with {port}")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=6, help="applications that run at once")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(APPLICATIONS)}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(APPLICATIONS):
        parser.error(f"no such application: {', '.join(unknown)}")
    signal.signal(signal.SIGTERM, interrupted)
    signal.signal(signal.SIGINT, interrupted)
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        names = options.names or list(APPLICATIONS)
        runs = [(name, number) for name in names for number in range(len(options.server))]
        results = list(pool.map(lambda one: passes(*one, options, pathlib.Path(work)), runs))
    failed = results.count(False)
    print(f"{failed} of {len(results)} applications failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
