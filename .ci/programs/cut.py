"""Cuts the programs out of the peers' READMEs, and changes their imports.

Usage: cut.py <directory of the READMEs> <directory to write to>

Each program becomes a directory with a main.go. A README's fragment gets what it says
it leaves out: the package, the imports, main, and the call of Serve.
"""

import pathlib
import re
import sys

texts, out = map(pathlib.Path, sys.argv[1:])


def text(name):
    return (texts / name).read_text()


def between(s, begin, end):
    """The part of s from begin up to end."""
    i = s.index(begin)
    return s[i : s.index(end, i)]


def write(name, source, *changes):
    """Writes a program. Each change replaces something that has to be there."""
    for old, new in changes:
        if old not in source:
            sys.exit(f"{name}: {old!r} is not in the program")
        source = source.replace(old, new)
    (out / name).mkdir(parents=True)
    (out / name / "main.go").write_text(source)


def program(imports, *bodies):
    lines = "".join(f"\t{i}\n" for i in imports)
    return f"package main\n\nimport (\n{lines})\n\nfunc main() {{\n" + "\n".join(bodies) + "\n}\n"


EVIO = 'evio "github.com/rondo-go/rondo/compat/evio2017"'


def evio():
    readme = text("evio-2017-readme.txt")
    write(
        "evio-echo",
        between(readme, "package main", "Here the only event"),
        ('"github.com/tidwall/evio"', EVIO),
    )
    echo = "events.Data = func(id int, in []byte) (out []byte, action evio.Action) { return in, evio.None }"
    write(
        "evio-addresses",
        program([EVIO], "var events evio.Events", echo, between(readme, 'evio.Serve(events, "tcp://192', "\n\nTicker")),
        ("192.168.0.10", "127.0.0.1"),
    )
    write(
        "evio-tick",
        program(['"log"', '"time"', EVIO], "var events evio.Events", between(readme, "events.Tick", "\n\nWake up"),
                'log.Fatal(evio.Serve(events, "tcp://127.0.0.1:5001"))'),
        ("action Action", "action evio.Action"),
    )
    write(
        "evio-wake",
        program(['"log"', '"net"', '"sync"', '"time"', EVIO], "var events evio.Events",
                between(readme, "var wake func", "\n\nData translations"),
                'log.Fatal(evio.Serve(events, "tcp://127.0.0.1:5002"))'),
    )
    answer = """events.Data = func(id int, in []byte) (out []byte, action evio.Action) {
		if in == nil {
			return
		}
		return []byte("HTTP/1.1 200 OK\\r\\nContent-Length: 14\\r\\n\\r\\nHello World!\\r\\n"), evio.None
	}"""
    write(
        "evio-tls",
        program(['"crypto/tls"', '"io"', '"log"', EVIO], between(readme, "var events Events", "\n\nHere we wrapped")),
        ("var events Events", "var events evio.Events"),
        ("// ... fill the events with happy functions", answer),
        ("log.Fatal(Serve(", "log.Fatal(evio.Serve("),
    )


def gaio():
    readme = text("gaio-readme.txt")
    ours = ('"github.meowingcats01.workers.dev/xtaci/gaio"', '"github.com/rondo-go/rondo/compat/gaio"')
    write("gaio-echo", between(readme, "package main", "Push server"), ours)
    push = readme[readme.index("package mainpackage main") :]
    write("gaio-push", re.split(r"\nFor complete documentation", push)[0], ("package mainpackage main", "package main"), ours)


def goev():
    # The README lost line breaks on its way here, and its program would not compile: an
    # import is missing, a variable is not used, and one hides the other of its name.
    readme = re.sub(r"([)}])(?=(func|go|type|var)\b)", r"\1\n\n", text("goev-readme.txt"))
    changes = [
        ("package mainimport (", 'package main\n\nimport (\n"runtime"'),
        ('"github.com/shaovie/goev"', '"github.com/rondo-go/rondo/compat/goev"'),
        ("c.Destroc(h)", "c.Destroy(c)"),
        ("connReactor, err := goev", "connReactor, err = goev"),
        ("// parse msg", "c.Write(buf)"),
    ]
    service = between(readme, "package mainimport", "```\n### REUSEPORT")
    write("goev-service", service, *changes)
    several = readme[readme.index("### REUSEPORT Service Example") :]
    main = between(several, "func main() {", "```\n> Note: The reactor")
    changes[3] = ("connReactor, err := goev", "var err error\nconnReactor, err = goev")
    write("goev-reuseport", service[: service.index("func main() {")] + main, *changes)


evio()
gaio()
goev()
