"""Celery's tasks, and what asks its workers, on the Redis server of REDIS_URL, which is broker
and keeps the results.

    python -m celery -A celery_app worker -Q features
    python celery_app.py features       asks workers of the queue features
    python celery_app.py produce N      adds N tasks to the queue count
    python celery_app.py check N        wants an empty queue
"""

import os
import random
import sys
import time

import celery
import celery.exceptions
import redis

from world import PATIENCE, equal, eventually

app = celery.Celery("celery_app", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_default_queue="features",
    task_track_started=True,
    worker_prefetch_multiplier=4,
    broker_connection_retry_on_startup=True,
    # What a killed worker had begun comes back this many seconds later.
    broker_transport_options={"visibility_timeout": 5},
    beat_schedule={"often": {"task": "celery_app.mark", "schedule": 0.5, "args": ["often"]}},
    worker_hijack_root_logger=False,
)


def server():
    return redis.Redis.from_url(os.environ["REDIS_URL"])


# The tasks.


@app.task
def add(a, b):
    return a + b


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=5)
def flaky(self, times):
    if self.request.retries < times:
        raise self.retry(countdown=0.2)
    return self.request.retries


@app.task
def fails():
    raise ValueError("it always fails")


@app.task
def mark(key):
    with server() as r:
        return r.rpush(key, time.time())


@app.task(rate_limit="4/s")
def limited():
    mark("limited")


@app.task(bind=True)
def steps(self):
    for step in range(3):
        self.update_state(state="PROGRESS", meta={"step": step})
    with server() as r:
        r.blpop("go-on", PATIENCE)
    return "climbed"


@app.task
def sleep(seconds):
    time.sleep(seconds)


@app.task(ignore_result=True)
def count(n):
    # One write each, so that lines of several processes do not mix.
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND)
    os.write(ledger, f"b {n}\n".encode())
    time.sleep(random.random() / 100)
    os.write(ledger, f"e {n}\n".encode())
    os.close(ledger)


# The checks.


def results(r):
    equal(add.delay(2, 3).get(timeout=PATIENCE), 5)
    text = "κόσμε" * 200_000
    equal(add.delay(text, "!").get(timeout=PATIENCE), text + "!")
    asked = [add.delay(n, n) for n in range(100)]
    equal([one.get(timeout=PATIENCE) for one in asked], [2 * n for n in range(100)])
    climbing = steps.delay()
    eventually("a state of progress", lambda: climbing.info == {"step": 2})
    r.rpush("go-on", "1")
    equal(climbing.get(timeout=PATIENCE), "climbed")
    equal(climbing.state, "SUCCESS")
    climbing.forget()
    equal(r.exists(f"celery-task-meta-{climbing.id}"), 0)


def canvases(_):
    equal(celery.chain(add.s(1, 2), add.s(3), add.s(4))().get(timeout=PATIENCE), 10)
    grouped = celery.group(add.s(n, 1) for n in range(20))()
    equal(grouped.get(timeout=PATIENCE), list(range(1, 21)))
    # A chord's body begins when all of its header is done: a counter in the server.
    equal(celery.chord(add.s(n, n) for n in range(50))(total.s()).get(timeout=PATIENCE), 2450)


def retries(_):
    equal(flaky.delay(3).get(timeout=PATIENCE), 3)
    lost = fails.delay()
    try:
        lost.get(timeout=PATIENCE)
    except ValueError as err:
        equal(str(err), "it always fails")
    else:
        raise AssertionError("a task that fails has a result")
    equal(lost.state, "FAILURE")


def delays(r):
    begun = time.time()
    mark.apply_async(["delayed"], countdown=1.5).get(timeout=PATIENCE)
    after = float(r.lindex("delayed", 0)) - begun
    if after < 1.5:
        raise AssertionError(f"a task for 1.5 s later was done after {after} s")
    expired = mark.apply_async(["expired"], countdown=0.5, expires=0.1)
    eventually("an expired task", lambda: expired.state == "REVOKED")
    equal(r.exists("expired"), 0)
    equal(add.apply_async([1, 1], priority=9).get(timeout=PATIENCE), 2)


def periods(r):
    eventually("three ticks of beat", lambda: r.llen("often") >= 3)


def limits(r):
    """Each of the two workers begins at most four a second."""
    for one in [limited.delay() for _ in range(20)]:
        one.get(timeout=PATIENCE)
    starts = sorted(map(float, r.lrange("limited", 0, -1)))
    if starts[-1] - starts[0] < 1:
        raise AssertionError(f"20 tasks took {starts[-1] - starts[0]} s")


def controls(_):
    asked = app.control.inspect(timeout=10, limit=2)
    equal(sorted(answer["ok"] for answer in asked.ping().values()), ["pong", "pong"])
    equal(all("celery_app.add" in tasks for tasks in asked.registered().values()), True)
    slow = sleep.delay(10_000)
    eventually("a started task", lambda: slow.state == "STARTED")
    app.control.revoke(slow.id, terminate=True)
    eventually("a revoked task", lambda: slow.state == "REVOKED")
    equal(add.delay(1, 1).get(timeout=PATIENCE), 2)


def features():
    checks = [results, canvases, retries, delays, periods, limits, controls]
    with server() as r:
        for check in checks:
            check(r)
    print(", ".join(check.__name__ for check in checks))


def produce(number):
    with app.producer_pool.acquire(block=True) as producer:
        for n in range(int(number)):
            count.apply_async([n], queue="count", task_id=f"n-{n}", producer=producer)


def empty(_):
    """All that was taken was also acknowledged."""
    with server() as r:
        eventually("an empty queue", lambda: r.llen("count") + r.hlen("unacked") + r.zcard("unacked_index") == 0)


if __name__ == "__main__":
    import celery_app  # the tasks' module has this name in the workers too

    command, *arguments = sys.argv[1:]
    {"features": celery_app.features, "produce": celery_app.produce, "check": celery_app.empty}[command](*arguments)
