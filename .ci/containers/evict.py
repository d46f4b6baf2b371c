"""Lets the server on port 6379 evict keys when it is full."""
import socket

with socket.create_connection(("127.0.0.1", 6379), 5) as s:
    s.sendall(b"CONFIG SET maxmemory-policy allkeys-lru\r\n")
    assert s.recv(100) == b"+OK\r\n"
