// Node's ws, as a peer of foreign_test.go:
//
//	peer.js server MODE       echoes on a port that it prints, until its input ends
//	peer.js client MODE URL   has messages echoed, and closes with code 4000
"use strict";
const { WebSocket, WebSocketServer } = require("ws");
const { randomBytes } = require("crypto");

const perMessageDeflate = {
  none: false,
  takeover: { threshold: 1 },
  "no-takeover": { threshold: 1, serverNoContextTakeover: true, clientNoContextTakeover: true },
  small: { threshold: 1, serverMaxWindowBits: 9, clientMaxWindowBits: 9 },
};

function fail(why) {
  console.error(why);
  process.exit(1);
}

function* messages() {
  for (const n of [0, 1, 125, 126, 1000, 4096, 65535, 65536, 300000]) {
    yield "κόσμε".repeat(n).slice(0, n / 2);
    yield randomBytes(n);
    yield Buffer.alloc(n, "ab");
  }
}

function server(mode) {
  const s = new WebSocketServer({ host: "127.0.0.1", port: 0, perMessageDeflate: perMessageDeflate[mode] }, () => console.log(s.address().port));
  s.on("connection", (c) => c.on("message", (data, isBinary) => c.send(data, { binary: isBinary })));
  process.stdin.on("end", () => process.exit()).resume();
}

function client(mode, url) {
  const c = new WebSocket(url, { perMessageDeflate: perMessageDeflate[mode] });
  const all = messages();
  let sent;
  const next = () => {
    const { value, done } = all.next();
    if (done) {
      c.close(4000, "bye");
      return;
    }
    sent = value;
    c.send(sent);
  };
  c.on("open", () => {
    if ((c.extensions !== "") !== (mode !== "none")) fail("negotiated " + c.extensions);
    next();
  });
  c.on("message", (data, isBinary) => {
    const same = isBinary ? Buffer.compare(data, Buffer.from(sent)) === 0 : data.toString() === sent;
    if (!same || isBinary !== (typeof sent !== "string")) fail("a message of " + sent.length + " came back as one of " + data.length);
    next();
  });
  c.on("error", fail);
  c.on("close", (code) => (code === 4000 ? process.exit() : fail("closed with " + code)));
}

({ server, client })[process.argv[2]](...process.argv.slice(3));
