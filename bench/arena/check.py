"""Asks a server what HttpArena's validation asks: python3 check.py PORT"""
import base64
import hashlib
import os
import random
import socket
import struct
import sys
import time

PORT = int(sys.argv[1])
failed = []


def check(what, got, want):
    print("ok  " if got == want else "FAIL", what)
    if got != want:
        failed.append("%s: got %r, want %r" % (what, got, want))


def connect():
    for _ in range(200):
        try:
            s = socket.create_connection(("127.0.0.1", PORT), timeout=5)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return s
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("nobody listens on port %d" % PORT)


class Stream:
    """A connection, whose bytes are read exactly."""

    def __init__(self):
        self.socket, self.buffer = connect(), b""

    def send(self, *fragments):
        for i, f in enumerate(fragments):
            if i:
                time.sleep(0.03)
            self.socket.sendall(f)

    def read(self, n):
        while len(self.buffer) < n:
            more = self.socket.recv(65536)
            if not more:
                raise EOFError("the connection ended")
            self.buffer += more
        got, self.buffer = self.buffer[:n], self.buffer[n:]
        return got

    def line(self):
        while b"\r\n" not in self.buffer:
            self.buffer += self.socket.recv(65536)
        got, self.buffer = self.buffer.split(b"\r\n", 1)
        return got.decode()

    def response(self):
        """Returns status, fields and body of a response with a Content-Length."""
        status = int(self.line().split(" ", 2)[1])
        fields = {}
        while line := self.line():
            name, value = line.split(":", 1)
            fields[name.strip().lower()] = value.strip()
        return status, fields, self.read(int(fields.get("content-length", 0))).decode()


def get(path):
    return b"GET " + path.encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(body, chunked=False):
    head = b"POST /baseline11?a=13&b=42 HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    if chunked:
        return head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def baseline():
    s = Stream()
    a, b = random.randint(100, 999), random.randint(100, 999)
    for what, request, want in [
        ("sum of a query", get("/baseline11?a=13&b=42"), "55"),
        ("another sum", get("/baseline11?a=%d&b=%d" % (a, b)), str(a + b)),
        ("body with a length", post(b"20"), "75"),
        ("another body", post(b"%d" % a), str(55 + a)),
        ("body in chunks", post(b"20", chunked=True), "75"),
    ]:
        s.send(request)
        status, fields, body = s.response()
        check(what, (status, body, fields["content-type"].split(";")[0]), (200, want, "text/plain"))
    close = b"Connection: close\r\n\r\n"
    long = b"Content-Length: 2\r\n" + close
    for what, fragments, want in [
        ("split request line", [b"GET /baseli", b"ne11?a=13&b=42 HTTP/1.1\r\n", b"Host: localhost\r\n" + close], "55"),
        ("split before fields", [b"GET /baseline11?a=13&b=42 HTTP/1.1\r\n", b"Host: localhost\r\n", b"User-Agent: x\r\n", close], "55"),
        ("split before the body", [b"POST /baseline11?a=13&b=42 HTTP/1.1\r\nHost: localhost\r\n" + long, b"20"], "75"),
        ("split body", [b"POST /baseline11?a=13&b=42 HTTP/1.1\r\nHost: localhost\r\n" + long, b"2", b"0"], "75"),
    ]:
        s = Stream()
        s.send(*fragments)
        check(what, s.response()[2], want)
        check(what + ": end", s.socket.recv(1), b"")


def pipelined():
    s = Stream()
    s.send(get("/pipeline") * 16)
    check("16 requests at once", [s.response()[2] for _ in range(16)], ["ok"] * 16)


def frame(opcode, payload):
    mask = os.urandom(4)
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
    return bytes([0x80 | opcode]) + length + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(payload))


def read_frame(s):
    first, length = s.read(2)
    if length == 126:
        (length,) = struct.unpack(">H", s.read(2))
    return first, s.read(length)


def web_socket():
    s = Stream()
    key = base64.b64encode(os.urandom(16))
    s.send(b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           b"Sec-WebSocket-Key: " + key + b"\r\nSec-WebSocket-Version: 13\r\n\r\n")
    status, fields, _ = s.response()
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()).decode()
    check("handshake", (status, fields.get("sec-websocket-accept")), (101, accept))
    for what, opcode, payload in [("text", 1, b"hello"), ("binary", 2, os.urandom(256))]:
        s.send(frame(opcode, payload))
        check(what + " comes back", read_frame(s), (0x80 | opcode, payload))
    many = [b"message %d" % i for i in range(5)]
    s.send(b"".join(frame(1, m) for m in many))
    check("five at once", [read_frame(s)[1] for _ in many], many)
    s.send(frame(8, struct.pack(">H", 1000) + b"done"))
    first, payload = read_frame(s)
    check("close", (first, payload[:2]), (0x88, struct.pack(">H", 1000)))
    s = Stream()
    s.send(get("/ws"))
    check("no WebSocket", s.response()[0] // 100, 4)


for part in baseline, pipelined, web_socket, pipelined:
    part()
if failed:
    sys.exit("\n".join(failed))
