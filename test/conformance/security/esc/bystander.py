"""A service of the host that a sandbox must not reach: TCP and UDP on every address, and an abstract unix socket.

Prints its port and the name of its socket; then, for each line on standard input, the list of whoever came.
"""

import json
import os
import selectors
import socket
import sys

name = f"agentfense-bystander-{os.getpid()}"
stream = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
port = stream.getsockname()[1]
datagram = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
datagram.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
datagram.bind(("::", port))
listeners = [stream]
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    listener = socket.socket(socket.AF_UNIX, kind)
    try:
        listener.bind("\0" + name + ("" if kind == socket.SOCK_STREAM else ".packet"))
        listener.listen()
        listeners.append(listener)
    except OSError:
        pass

heard = []
selector = selectors.DefaultSelector()
for listener in [*listeners, datagram, sys.stdin]:
    selector.register(listener, selectors.EVENT_READ)
print(json.dumps({"port": port, "socketName": name}), flush=True)

while True:
    for key, _ in selector.select():
        if key.fileobj is sys.stdin:
            if not sys.stdin.readline():
                sys.exit(0)
            print(json.dumps(heard), flush=True)
        elif key.fileobj is datagram:
            heard.append(f"datagram from {datagram.recvfrom(100)[1][0]}")
        else:
            connection, peer = key.fileobj.accept()
            heard.append(f"connection from {peer[0] if peer else 'a unix socket'}")
            connection.close()
