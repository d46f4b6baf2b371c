"""rq's jobs, and what asks its workers, on the Redis server of REDIS_URL.

    python rq_app.py features        asks workers of the queue features
    python rq_app.py produce N       adds N jobs to the queue count
    python rq_app.py recover         puts back what killed workers had begun
    python rq_app.py check N         wants N jobs finished
"""

import contextlib
import datetime
import os
import random
import signal
import sys
import time

import redis
import rq
import rq.command
import rq.intermediate_queue
import rq.registry

from world import PATIENCE, descendants, equal, eventually


# The jobs.


def add(a, b):
    return a + b


def flaky(times):
    """Fails at its first times."""
    job = rq.get_current_job()
    n = job.connection.incr(f"tries:{job.id}")
    if n <= times:
        raise ValueError(f"try {n} fails")
    return n


def mark(key):
    connection = rq.get_current_job().connection
    return connection.rpush(key, time.time())


def sleep(seconds):
    time.sleep(seconds)


def dies():
    os.kill(os.getpid(), signal.SIGKILL)


def succeeded(job, connection, result, *_):
    connection.set(f"succeeded:{job.id}", result)


def failed(job, connection, kind, value, _):
    connection.set(f"failed:{job.id}", f"{kind.__name__}: {value}")


def count(n):
    # One write each, so that lines of several processes do not mix.
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND)
    os.write(ledger, f"b {n}\n".encode())
    time.sleep(random.random() / 100)
    os.write(ledger, f"e {n}\n".encode())
    os.close(ledger)


# The checks.


def has_status(job, status):
    eventually(f"{job.func_name} {status}", lambda: job.get_status(refresh=True) == status)


def results(queue, r):
    job = queue.enqueue(add, 2, 3)
    equal(job.latest_result(timeout=PATIENCE).return_value, 5)
    equal(job.get_status(), "finished")
    text = "κόσμε" * 200_000
    job = queue.enqueue(add, text, "!")
    equal(job.latest_result(timeout=PATIENCE).return_value, text + "!")
    made = [rq.Queue.prepare_data(add, (n, n), job_id=f"many-{n}") for n in range(50)]
    jobs = queue.enqueue_many(made)
    for n, job in enumerate(jobs):
        has_status(job, "finished")
        equal(job.return_value(), 2 * n)
    equal(len(rq.job.Job.fetch_many([j.id for j in jobs], connection=r)), 50)


def retries(queue, r):
    job = queue.enqueue(flaky, 2, retry=rq.Retry(max=3))
    has_status(job, "finished")
    equal(job.return_value(), 3)
    later = queue.enqueue(flaky, 1, retry=rq.Retry(max=2, interval=1))
    has_status(later, "finished")
    lost = queue.enqueue(flaky, 2, retry=rq.Retry(max=1), on_failure=rq.Callback(failed))
    has_status(lost, "failed")
    equal(r.get(f"failed:{lost.id}"), b"ValueError: try 2 fails")
    equal(lost.latest_result().type.name, "FAILED")
    equal(queue.failed_job_registry.get_job_ids(), [lost.id])
    queue.failed_job_registry.requeue(lost.id)
    has_status(lost, "finished")
    equal(len(queue.failed_job_registry), 0)


def schedules(queue, r):
    soon = queue.enqueue_in(datetime.timedelta(seconds=1), mark, "soon")
    far = queue.enqueue_at(datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1), mark, "far")
    begun = time.time()
    equal(far in queue.scheduled_job_registry, True)
    has_status(soon, "finished")
    if float(r.lindex("soon", 0)) < begun:  # rq's times are whole seconds
        raise AssertionError("a job for later was done at once")
    far.cancel()
    equal(far in queue.scheduled_job_registry, False)
    queue.enqueue(mark, "often", repeat=rq.Repeat(times=2, interval=1))
    eventually("three times a repeated job", lambda: r.llen("often") == 3)


def dependents(queue, r):
    first = [queue.enqueue(add, n, n) for n in range(3)]
    last = queue.enqueue(mark, "last", depends_on=first, on_success=rq.Callback(succeeded))
    has_status(last, "finished")
    equal([j.get_status(refresh=True) for j in first], ["finished"] * 3)
    eventually("a call at success", lambda: r.get(f"succeeded:{last.id}") == b"1")
    never = queue.enqueue(dies)
    waiting = queue.enqueue(mark, "never", depends_on=never)
    has_status(never, "failed")
    equal(waiting.get_status(refresh=True), "deferred")
    equal(r.exists("never"), 0)


def leads_group(pid):
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid) == pid


def ends(queue, r):
    """Jobs that are stopped, take too long, or whose process dies."""
    job = queue.enqueue(sleep, 10_000)
    has_status(job, "started")
    # RQ says so before it forks, and forgets the process before the job. A worker told to stop a
    # job that has no process with a group of its own kills the worker's group. So it is told once.
    pids = [w.pid for w in rq.Worker.all(queue=queue)]
    eventually("a process for the job", lambda: any(leads_group(p) for pid in pids for p in descendants(pid)))

    def told():
        with contextlib.suppress(rq.exceptions.InvalidJobOperation):  # it has no worker yet
            rq.command.send_stop_job_command(r, job.id)
            return True

    eventually("a worker to tell", told)
    has_status(job, "stopped")
    slow = queue.enqueue(sleep, 10_000, job_timeout=1, on_failure=rq.Callback(failed))
    has_status(slow, "failed")
    if not r.get(f"failed:{slow.id}").startswith(b"JobTimeoutException"):
        raise AssertionError(r.get(f"failed:{slow.id}"))
    dead = queue.enqueue(dies)
    has_status(dead, "failed")
    if "terminated unexpectedly" not in dead.latest_result().exc_string:
        raise AssertionError(dead.latest_result().exc_string)


def workers(queue, r):
    equal(len(rq.Worker.all(queue=queue)), 2)
    equal(rq.Worker.count(connection=r), 2)
    eventually("workers that wait", lambda: {w.get_state() for w in rq.Worker.all(queue=queue)} == {"idle"})
    equal(queue.count, 0)


def features(r):
    queue = rq.Queue("features", connection=r)
    checks = [results, retries, schedules, dependents, ends, workers]
    for check in checks:
        check(queue, r)
    print(", ".join(check.__name__ for check in checks))


def produce(r, total):
    queue = rq.Queue("count", connection=r)
    for start in range(0, total, 100):
        queue.enqueue_many(
            rq.Queue.prepare_data(count, (n,), job_id=f"n-{n}", retry=rq.Retry(max=1000), result_ttl=3600)
            for n in range(start, min(start + 100, total))
        )


def recover(r):
    """Puts back jobs that were begun by workers that are dead, as if an hour had passed: a
    living worker's job is done twice then, which is no loss."""
    queue = rq.Queue("count", connection=r)
    queue.started_job_registry.cleanup(timestamp=time.time() + 3600)
    between = rq.intermediate_queue.IntermediateQueue(queue.key, r)
    for job_id in between.get_job_ids():
        between.remove(job_id)
        job = queue.fetch_job(job_id)
        if job and job.get_status() == "queued":
            queue.enqueue_job(job)
    for job_id in queue.failed_job_registry.get_job_ids():
        queue.failed_job_registry.requeue(job_id)


def check(r, total):
    queue = rq.Queue("count", connection=r)

    def all_finished():
        return len(queue.finished_job_registry) == total and queue.count == 0

    eventually(f"{total} finished jobs", all_finished)


def main():
    command, *arguments = sys.argv[1:]
    r = redis.Redis.from_url(os.environ["REDIS_URL"])
    {"features": features, "produce": produce, "recover": recover, "check": check}[command](r, *map(int, arguments))


if __name__ == "__main__":
    # Workers have to find the jobs in a module.
    import rq_app

    rq_app.main()
