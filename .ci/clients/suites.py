"""Runs redis-py's and go-redis's own tests against two servers, and names those that differ.

    python suites.py --server './rondo redis --addr tcp://127.0.0.1:{port}' \
        --reference 'redis-server --port {port} --save "" --enable-debug-command yes'

redis-py's tests come with its source package, go-redis's with its module: both in the
versions that the programs beside this one use. Nothing of them is kept. The exit status is 1
if a test that passes on the reference does not on the server, and differs.txt does not name
it; or if a named one passes.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent / "applications"))

from world import Server  # noqa: E402

# Files of redis-py's tests for a server alone. Others need clusters, sentinels, modules or TLS.
REDISPY = """test_commands test_lock test_pipeline test_pubsub test_scripting test_function
    test_monitor test_encoding test_cache test_client test_multiprocessing
    test_connection_pool test_retry
    test_asyncio/test_commands test_asyncio/test_lock test_asyncio/test_pipeline
    test_asyncio/test_pubsub test_asyncio/test_scripting test_asyncio/test_monitor
    test_asyncio/test_encoding test_asyncio/test_connection_pool""".split()
# Of go-redis's too: the others need clusters, sentinels, rings or modules.
GOREDIS = "bitmap_commands commands iterator monitor pipeline pool pubsub race redis tx".split()
AGAIN = 2  # times that a test that differs is tried again: some depend on time


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def must(command, **more):
    done = run(command, **more)
    if done.returncode != 0:
        raise SystemExit(f"{command}: exit status {done.returncode}\n{done.stdout[-6000:]}")
    return done.stdout


def outcomes(report, name):
    """Reads a report in JUnit's form: each test's outcome, and the text of its failure."""
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag: child for child in case}
        bad = kinds.get("failure", kinds.get("error"))
        if bad is not None:
            outcome = ("failed", f"{bad.get('message', '')}\n{bad.text or ''}")
        elif "skipped" in kinds:
            outcome = ("skipped", kinds["skipped"].get("message", ""))
        else:
            outcome = ("passed", "")
        found[name(case)] = outcome
    return found


class RedisPy:
    def __init__(self, work, protocol):
        self.name = f"redis-py, RESP{protocol}"
        self.work, self.protocol = work, protocol
        self.tree = work / "redis-py"
        if not self.tree.exists():
            pinned = (HERE / "requirements.txt").read_text().split()
            (wanted,) = [line for line in pinned if line.startswith("redis==")]
            pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
            must([*pip, "--no-binary", ":all:", "-d", work, wanted])
            with tarfile.open(*work.glob("redis-*.tar.gz")) as archive:
                archive.extractall(work / "unpacked", filter="data")
            (tree,) = (work / "unpacked").iterdir()
            shutil.rmtree(tree / "redis")  # the tests are for the installed one
            tree.rename(self.tree)

    def run(self, server, only=None):
        report = self.work / f"redis-py-{server.port}.xml"
        report.unlink(missing_ok=True)
        files = [f"tests/{name}.py" for name in REDISPY]
        files = [name for name in files if (self.tree / name).exists()]
        done = run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
            + ["--continue-on-collection-errors", "--timeout", "60", "-o", "filterwarnings=ignore", "-m", "not onlycluster and not redismod and not ssl and not replica"]
            + [f"--redis-url=redis://127.0.0.1:{server.port}/9", f"--protocol={self.protocol}"]
            + (sorted(only) if only else files),
            cwd=self.tree,
        )
        if not report.exists():
            raise SystemExit(f"pytest: exit status {done.returncode}\n{done.stdout[-6000:]}")
        return outcomes(report, self.test)

    @staticmethod
    def test(case):
        """A test's name as pytest takes it."""
        path = case.get("classname").split(".")
        modules = [i for i, part in enumerate(path) if part.startswith("test_")]
        if not modules:
            return f"reading {case.get('name')}"
        module = modules[-1]
        return "::".join(["/".join(path[: module + 1]) + ".py", *path[module + 1 :], case.get("name")])


class GoRedis:
    name = "go-redis"

    def __init__(self, work):
        self.work = work
        self.tree = work / "go-redis"
        module = "github.com/redis/go-redis/v9"
        must(["go", "mod", "download", module], cwd=HERE)
        directory = json.loads(must(["go", "list", "-m", "-json", module], cwd=HERE))["Dir"]
        shutil.copytree(directory, self.tree)
        for path in [self.tree, *self.tree.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        # Its suite begins with a cluster, sentinels and replicas of its own.
        main = self.tree / "main_test.go"
        text = main.read_text()
        for before, after in [
            ("if !RECluster {\n\n\t\tredisMain", "if false {\n\n\t\tredisMain"),
            ("if !RECluster {\n\t\tExpect(cluster.Close", "if false {\n\t\tExpect(cluster.Close"),
            ("\t\tredisPort = rediStackPort\n\t\tredisAddr = rediStackAddr\n", ""),
        ]:
            if text.count(before) != 1:
                raise SystemExit(f"go-redis's main_test.go has not once: {before}")
            text = text.replace(before, after)
        main.write_text(text)
        must(["go", "test", "-vet=off", "-c", "-o", self.tree / "suite", "."], cwd=self.tree)

    def run(self, server, _=None):
        report = self.work / f"go-redis-{server.port}.xml"
        report.unlink(missing_ok=True)
        done = run(
            [self.tree / "suite", "-test.run=^TestGinkgoSuite$", "-test.timeout=20m", "-ginkgo.seed=1"]
            + [f"-ginkgo.junit-report={report}", "-ginkgo.skip=cluster races"]
            + [f"-ginkgo.focus-file=^.*/{name}_test\\.go$" for name in GOREDIS],
            cwd=self.tree,
            env=os.environ | {"REDIS_PORT": str(server.port)},
        )
        if not report.exists():
            raise SystemExit(f"go-redis: exit status {done.returncode}\n{done.stdout[-6000:]}")
        found = outcomes(report, lambda case: case.get("name"))
        # A test out of focus is said to be skipped.
        return {name: outcome for name, outcome in found.items() if name.startswith("[It]")}


def known():
    """The tests of differs.txt: lines of a name, under comments that give the reason."""
    lines = (HERE / "differs.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def results_on(suite, kind, command, work, expected, reference=None):
    """A suite's results on a server. What differs from the reference's results is tried again."""
    server = Server(command, work / kind)
    try:
        found = suite.run(server)
        for _ in range(AGAIN if reference else 0):
            passed = {name for name, (outcome, _) in reference.result().items() if outcome == "passed"}
            differing = {name for name in passed - expected if found.get(name, ("missing",))[0] != "passed"}
            if not differing:
                break
            again = suite.run(server, differing)
            found.update({name: again[name] for name in differing if name in again})
        return found
    finally:
        server.close()


def compare(suite, options, work, expected):
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # the tests wait, mostly
        reference = pool.submit(results_on, suite, "reference", options.reference, work, expected)
        server = pool.submit(results_on, suite, "server", options.server, work, expected, reference)
        results = {"reference": reference.result(), "server": server.result()}
    reference, server = results["reference"], results["server"]
    differ = [
        name
        for name in sorted(reference)
        if reference[name][0] != server.get(name, ("missing", ""))[0] and reference[name][0] == "passed"
    ]
    better = [n for n in sorted(server) if server[n][0] == "passed" and reference.get(n, ("missing",))[0] == "failed"]
    for kind, found in results.items():
        counted = collections.Counter(outcome for outcome, _ in found.values())
        print(f"{suite.name}, {kind}: {dict(sorted(counted.items()))}", flush=True)
    bad = 0
    for name in differ:
        outcome, text = server.get(name, ("missing", ""))
        bad += name not in expected
        print(f"{'known' if name in expected else 'DIFFERS'} {suite.name}: {name}: {outcome}")
        if name not in expected or options.verbose:
            print(text[-3000:])
    for name in better:
        print(f"fails on the reference alone, {suite.name}: {name}")
    print(f"{suite.name}: {time.monotonic() - start:.1f} s", flush=True)
    return bad, set(differ)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--suites", default="redis-py-2 redis-py-3 go-redis")
    parser.add_argument("--verbose", action="store_true", help="show why known ones fail")
    options = parser.parse_args()
    bad, met, expected = 0, set(), known()
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        makers = {
            "redis-py-2": lambda: RedisPy(work, 2),
            "redis-py-3": lambda: RedisPy(work, 3),
            "go-redis": lambda: GoRedis(work),
        }
        suites = options.suites.split()
        for name in suites:
            more, differing = compare(makers[name](), options, work, expected)
            bad += more
            met |= differing
    if len(suites) == len(makers):
        for name in sorted(expected - met):
            print(f"differs.txt names a test that does not differ: {name}")
            bad += 1
    print(f"{bad} tests differ that are not named")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
