"""What the checks of applications share: servers, processes that may be killed, and a ledger of
the jobs that were done."""

import contextlib
import os
import pathlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

import redis

PATIENCE = 300  # seconds that anything may take on a loaded machine before it counts as stuck
HERE = pathlib.Path(__file__).parent


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r:.500}, want {want!r:.500}")


def eventually(what, condition, patience=PATIENCE):
    """Waits until a condition holds, and returns its value."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"in {patience} s there was not: {what}")
        time.sleep(0.05)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server's process. Its command has {port} where the port goes."""

    def __init__(self, command, log):
        for _ in range(5):  # another process may take the port first
            self.port = free_port()
            self.log = pathlib.Path(f"{log}-{self.port}.log")
            with self.log.open("wb") as out:
                argv = shlex.split(command.format(port=self.port))
                self.process = subprocess.Popen(argv, stdout=out, stderr=out, cwd=self.log.parent)
            if self.answers():
                return
            self.kill()
        raise AssertionError(f"{command} does not answer:\n{self.log.read_text()[-2000:]}")

    def answers(self):
        with contextlib.closing(self.client()) as r:
            for _ in range(400):
                with contextlib.suppress(redis.ConnectionError):
                    # Another program's server may have the port.
                    return r.ping() and self.process.poll() is None
                if self.process.poll() is not None:
                    return False
                time.sleep(0.05)
        return False

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"redis://{self.address}/0"

    def client(self, **more):
        return redis.Redis(host="127.0.0.1", port=self.port, socket_timeout=PATIENCE, **more)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        """Ends the server as an operator does, and wants exit status 0."""
        if self.process.poll() is None:
            self.process.terminate()
        if status := self.process.wait(PATIENCE):
            raise AssertionError(f"the server ended with status {status}:\n{self.log.read_text()[-2000:]}")


def descendants(pid):
    """The processes below one: its children, and theirs. It reads /proc."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


class World:
    """One application's server and processes."""

    def __init__(self, name, command, work):
        self.name = name
        self.work = pathlib.Path(work) / name.replace(" ", "-").replace(",", "")
        self.work.mkdir()
        self.command = command
        self.processes = []
        self.servers = []
        self.lock = threading.Lock()

    def server(self):
        server = Server(self.command, self.work / "server")
        self.servers.append(server)
        return server

    def start(self, *argv, **environment):
        """Starts a process, whose output goes to a file. It has a group of its own: some workers
        kill their group."""
        with self.lock:
            log = self.work / f"process-{len(self.processes)}.log"
            with log.open("wb") as out:
                process = subprocess.Popen(
                    [str(a) for a in argv],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    cwd=self.work,
                    start_new_session=True,
                    env=os.environ | {"PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
                )
            process.log = log
            self.processes.append(process)
        return process

    def run(self, *argv, **environment):
        """Runs a process to its end, and wants exit status 0."""
        return self.ends_well(self.start(*argv, **environment))

    def ends_well(self, process):
        """Waits for a process, and wants exit status 0."""
        try:
            status = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill(process)
            status = f"none in {PATIENCE} s"
        text = process.log.read_text(errors="replace")
        if status != 0:
            argv = " ".join(map(str, process.args[:4]))
            raise AssertionError(f"{argv}: exit status {status}:\n{text[-6000:]}")
        return text

    def python(self, *argv, **environment):
        return self.run(sys.executable, *argv, **environment)

    def kill(self, process):
        """Kills a process and those below it, as the end of a machine does."""
        below = []
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)  # or it might fork another meanwhile
            below = descendants(process.pid)
        process.kill()
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def terminate(self, process):
        """Ends a process as an operator does. Any status will do. A program may lose a signal that comes
        while it starts: it gets another one after some time."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
                return
        raise AssertionError(f"{process.args[0]} goes on after SIGTERM")

    def still_running(self, process):
        if process.poll() is not None:
            text = process.log.read_text(errors="replace")
            raise AssertionError(f"{process.args[:3]} ended with status {process.returncode}:\n{text[-6000:]}")

    def tail(self):
        """The ends of the processes' outputs, for a failure's report."""
        logs = [s.log for s in self.servers] + [p.log for p in self.processes]
        texts = [(log.name, log.read_text(errors="replace").strip()[-1500:]) for log in logs]
        return "\n".join(f"--- {name}\n{text}" for name, text in texts if text)

    def end(self):
        """Kills what is left of the processes. No server is left after it."""
        for process in self.processes:
            self.kill(process)
        try:
            for server in self.servers:
                if server.process.returncode != -signal.SIGKILL:
                    server.close()
        finally:
            for server in self.servers:
                server.kill()


class Ledger:
    """A file to which jobs append a line when they begin and when they end: "b ID" and "e ID".
    The server under test has no part in it."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.path.touch()
        self.begun, self.ended = {}, {}
        self.file = self.path.open()
        self.rest = ""

    def read(self):
        *lines, self.rest = (self.rest + self.file.read()).split("\n")
        for line in lines:
            kind, _, job = line.partition(" ")
            counts = {"b": self.begun, "e": self.ended}[kind]
            counts[job] = counts.get(job, 0) + 1
        return self

    def done(self):
        return len(self.read().ended)

    def again(self):
        """The number of jobs that began more than once."""
        return sum(1 for n in self.read().begun.values() if n > 1)

    def close(self):
        self.file.close()


class Killer:
    """Ends workers in the middle of their jobs and starts others, again and again."""

    def __init__(self, world, ledger, start, total, workers=3):
        self.world, self.ledger, self.total, self.start = world, ledger, total, start
        self.workers = [start() for _ in range(workers)]
        self.kills = 0

    def replace(self, end=None):
        """Ends a worker, by kill -9 or as end does, and starts another."""
        victim = self.workers.pop(random.randrange(len(self.workers)))
        self.world.still_running(victim)
        (end or self.world.kill)(victim)
        self.kills += 1
        self.workers.append(self.start())

    def kill_below(self):
        """Kills one of the processes that a worker has for its jobs, by kill -9."""
        victim = random.choice(self.workers)
        self.world.still_running(victim)
        os.kill(eventually("a worker's process", lambda: descendants(victim.pid))[-1], signal.SIGKILL)
        self.kills += 1

    def without_workers(self, function):
        """Kills all workers, calls a function, and starts others."""
        for worker in self.workers:
            self.world.kill(worker)
        self.kills += len(self.workers)
        function()
        self.workers = [self.start() for _ in self.workers]

    def work(self, kills, strike, idle=None):
        """Calls strike at equal steps of the count of jobs done, and waits until all are done.
        It calls idle after a second without progress."""
        for n in range(1, kills + 1):
            part = self.total * n // (kills + 2)
            eventually(f"{part} jobs done", lambda: self.ledger.done() >= part)
            strike(self)
        end = time.monotonic() + PATIENCE
        while self.ledger.done() < self.total:
            if time.monotonic() > end:
                missing = self.total - self.ledger.done()
                raise AssertionError(f"{missing} of {self.total} jobs are lost after {self.kills} kills")
            before = self.ledger.done()
            time.sleep(1)
            if idle and self.ledger.done() == before:
                idle(self)

    def finish(self, process, idle=None):
        """Waits until a process ends well, and calls idle each second."""
        end = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < end:
            time.sleep(1)
            if idle:
                idle(self)
        self.world.ends_well(process)

    def close(self):
        for worker in self.workers:
            self.world.kill(worker)
