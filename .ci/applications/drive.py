"""Drives two web sites that keep their sessions and their cache in a Redis server.

    RONDO_ADDR=127.0.0.1:6379 NODE_PATH=... python drive.py

The server's keys are lost. Each site is a process of its own, which the driver starts,
ends and starts again: what a site knows, it knows from the server. The exit status is 1
when a check fails.
"""

import concurrent.futures
import contextlib
import http.cookiejar
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback
import urllib.request

import redis

PATIENCE = 60  # seconds that anything may take on a loaded machine before it counts as stuck
HERE = pathlib.Path(__file__).parent


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r:.500}, want {want!r:.500}")


class Site:
    """A site's process."""

    def __init__(self, *command):
        self.command = command
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def restart(self):
        self.close()
        self.start()


class Browser:
    """A visitor with cookies of its own."""

    def __init__(self, site):
        self.site = site
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def get(self, path, body=None):
        url = f"http://127.0.0.1:{self.site.port}{path}"
        with self.opener.open(url, data=body, timeout=PATIENCE) as answer:
            return answer.read()

    def ask(self, path):
        return json.loads(self.get(path))

    def visits(self, path="/visit"):
        return self.ask(path)["visits"]

    def cookie(self):
        return [c.value for c in self.jar][0]


def sessions_stay(site, _):
    """Sessions are kept apart, over many requests at once and over the site's end."""
    browsers = [Browser(site) for _ in range(40)]

    def visit(i):
        for n in range(1 + i % 5):
            equal(browsers[i].visits(), n + 1)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(len(browsers))))
    site.restart()
    for i, browser in enumerate(browsers):
        equal(browser.visits(), 2 + i % 5)


def login_changes_key(site, r):
    browser = Browser(site)
    browser.visits()
    equal(r.dbsize(), 1)
    before, thief = browser.cookie(), Browser(site)
    for cookie in browser.jar:
        thief.jar.set_cookie(cookie)
    equal(browser.visits("/login"), 1)
    if browser.cookie() == before:
        raise AssertionError("the session has the same key after a login")
    equal(browser.visits(), 2)
    equal(thief.visits(), 1)  # the old session is gone
    equal(r.dbsize(), 2)


def logout_deletes(site, r):
    browser, other = Browser(site), Browser(site)
    browser.visits()
    other.visits()
    equal(r.dbsize(), 2)
    browser.ask("/logout")
    equal(r.dbsize(), 1)
    equal(browser.visits(), 1)
    equal(other.visits(), 2)


def in_time(limit, attempt):
    """Returns attempt's result. If it fails after more than limit seconds, it is made again."""
    while True:
        begin = time.monotonic()
        try:
            return attempt()
        except AssertionError:
            if time.monotonic() - begin < limit:
                raise


def django_sessions_expire(site, r):
    def short():
        r.flushall()
        browser = Browser(site)
        equal(browser.visits(), 1)
        key = r.keys()[0]
        if not 1_000_000 < r.ttl(key) <= 1_209_600:
            raise AssertionError(f"a session lives for {r.ttl(key)} s, want two weeks")
        equal(browser.visits("/visit?expire=1"), 2)
        if not 0 < r.pttl(key) <= 1000:
            raise AssertionError(f"a short session lives for {r.pttl(key)} ms")
        return browser, key

    browser, key = in_time(1, short)
    time.sleep(1.1)
    equal(r.exists(key), 0)
    equal(browser.visits(), 1)


EXPRESS_LIFE = 3  # seconds, as in site_express.js


def express_sessions_expire(site, r):
    browser = None
    while browser is None:
        browser = renewed_session(site, r)
    key = r.keys()[0]
    time.sleep(EXPRESS_LIFE + 0.1)
    equal(r.exists(key), 0)
    equal(browser.visits("/look"), 0)
    if not 80_000 < Browser(site).visits() * r.ttl(r.keys()[0]) <= 86_400:
        raise AssertionError("a session without an end does not live for a day")


def renewed_session(site, r):
    """Looks at a short session for longer than it would live without a request.

    The result is the browser, or None if the machine stood still for so long that the
    session's end proves nothing. A cookie's end has no fractions of seconds: it may come a
    second early.
    """
    r.flushall()
    browser, asked = Browser(site), time.monotonic()
    end = asked + EXPRESS_LIFE + 1
    equal(browser.visits("/visit?short"), 1)
    while asked < end:
        time.sleep(0.5)
        before, asked = asked, time.monotonic()
        visits = browser.visits("/look")
        if time.monotonic() - before > EXPRESS_LIFE - 1.1:
            return None
        equal(visits, 1)
    return browser


def express_lists_sessions(site, r):
    browsers = [Browser(site) for _ in range(300)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(Browser.visits, browsers))
    r.set("another", "1")
    equal(browsers[0].ask("/sessions"), {"length": 300, "ids": 300, "all": 300, "visits": 300})
    Browser(site).ask("/clear")
    equal(r.keys(), [b"another"])
    equal(browsers[0].visits(), 1)


def django_pages(site, r):
    browser = Browser(site)

    def cached():
        r.flushall()
        first = browser.get("/page")
        equal(browser.get("/page"), first)
        if r.dbsize() == 0:
            raise AssertionError("the cached page is not in the server")
        return first

    first = in_time(1, cached)
    time.sleep(1.1)
    equal(r.dbsize(), 0)
    if browser.get("/page") == first:
        raise AssertionError("the page did not expire")


def django_cache(site, r):
    browser = Browser(site)

    def call(name, *args, **named):
        asked = json.dumps({"call": name, "args": args, "named": named})
        answer = json.loads(browser.get("/cache", asked.encode()))
        return answer.get("result", answer.get("error"))

    value = {"text": "κόσμε", "list": [1, 2.5, None, True], "nested": {"a": {"b": "c"}}}
    call("set", "k", value)
    equal(call("get", "k"), value)
    equal(call("get", "none", "default"), "default")
    equal(call("add", "k", 1), False)
    equal(call("add", "new", 1), True)
    equal(call("has_key", "new"), True)
    equal(call("delete", "new"), True)
    equal(call("delete", "new"), False)
    equal(call("incr", "new"), "Key ':1:new' not found.")
    call("set", "n", 10)
    equal(call("incr", "n", 5), 15)
    equal(call("decr", "n", 20), -5)
    equal(call("get_or_set", "n", 7), -5)
    equal(call("get_or_set", "m", 7), 7)
    equal(call("touch", "n", 0.3), True)
    equal(call("touch", "none"), False)
    call("set", "brief", 1, timeout=1)
    call("set", "never", 1, timeout=None)
    equal(r.ttl(":1:never"), -1)
    equal(call("incr_version", "k"), 2)
    equal(call("get", "k"), None)
    equal(call("get", "k", version=2), value)
    long = "x" * 1_000_000
    call("set", "long", long)
    equal(call("get", "long"), long)
    time.sleep(1.1)
    equal([call("has_key", k) for k in ("n", "brief", "never")], [False, False, True])


def django_many_keys(site, r):
    browser = Browser(site)

    def call(name, *args):
        asked = json.dumps({"call": name, "args": args})
        return json.loads(browser.get("/cache", asked.encode()))["result"]

    many = {f"key:{i}": {"number": i, "text": "v" * (i % 100)} for i in range(20_000)}
    equal(call("set_many", many), [])
    equal(r.dbsize(), len(many))
    equal(call("get_many", list(many) + ["none"]), many)
    half = list(many)[::2]
    call("delete_many", half)
    equal(r.dbsize(), len(many) - len(half))
    equal(call("get_many", half), {})
    equal(call("clear"), True)
    equal(r.dbsize(), 0)


SITES = {
    "Django": (
        1,
        [sys.executable, str(HERE / "site_django.py")],
        [sessions_stay, login_changes_key, logout_deletes, django_sessions_expire, django_pages, django_cache, django_many_keys],
    ),
    "Express": (
        2,
        ["node", str(HERE / "site_express.js")],
        [sessions_stay, login_changes_key, logout_deletes, express_sessions_expire, express_lists_sessions],
    ),
}


def main():
    failed = 0
    host, _, port = os.environ["RONDO_ADDR"].rpartition(":")
    for name, (database, command, checks) in SITES.items():
        with (
            contextlib.closing(Site(*command)) as site,
            contextlib.closing(redis.Redis(host=host, port=int(port), db=database)) as r,
        ):
            for check in checks:
                failed += not passes(name, check, site, r)
    print(f"{failed} checks failed")
    return 1 if failed else 0


def passes(name, check, site, r):
    start = time.monotonic()
    try:
        r.flushall()
        check(site, r)
    except Exception:  # the others are to run all the same
        print(f"FAIL {name}: {check.__name__}\n{traceback.format_exc()}")
        return False
    print(f"ok   {name}: {check.__name__} ({time.monotonic() - start:.2f} s)")
    return True


if __name__ == "__main__":
    sys.exit(main())
