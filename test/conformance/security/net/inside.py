"""What an agent would try in a filtered network: each line of the input is an attempt, its name and what it takes; outcomes are printed as a list."""

import ctypes
import errno
import json
import os
import re
import socket
import ssl
import struct
import subprocess
import sys

WAIT = 10
libc = ctypes.CDLL(None, use_errno=True)


def outcome(work):
    try:
        return work()
    except socket.gaierror:
        return "unknown name"
    except UnicodeError:
        return "no name"
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return "cut"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error)) if error.errno else "timed out"


def system_call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return "done"


def told(answer):
    """What came back, as short as can be: an alert of TLS, or the states of HTTP's answers."""
    if answer == b"":
        return "cut"
    if answer[0] == 21:
        return "alert"
    return " ".join(re.findall(r"HTTP/1\.1 (\d+)", answer.decode("latin1"))) or f"answered {answer[:40]!r}"


def tcp(host, port, text="", size=0):
    """Sends text and reads to the end; in pieces of a size, each by itself."""
    with socket.create_connection((host, port), WAIT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = b""
        try:
            data = text.encode("latin1")
            for at in range(0, len(data), size or len(data)):
                connection.sendall(data[at : at + (size or len(data))])
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            pass
        return told(answer)


def dns(text, server="198.18.0.53", over="udp", port=53):
    message = text.encode("latin1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM if over == "udp" else socket.SOCK_STREAM) as asking:
        asking.settimeout(1 if message[2] & 0x80 else WAIT)
        asking.connect((server, port))
        asking.sendall(message if over == "udp" else struct.pack(">H", len(message)) + message)
        answer = asking.recv(4096)[0 if over == "udp" else 2 :]
    return f"code {answer[3] & 15}, {struct.unpack('>H', answer[6:8])[0]} answers" if answer else "cut"


def question(name, parts={}, to=()):
    """A question for a name, which may be a list of its labels, and what else is in the message."""
    labels = (name.split(".") if isinstance(name, str) else name) + [""]
    encoded = "".join(chr(len(label)) + label for label in labels)
    head = "\x12\x34" + parts.get("flags", "\x01\0") + parts.get("counts", "\0\x01\0\0\0\0\0\0")
    return dns(head + encoded + f"\0{chr(parts.get('kind', 1))}\0{chr(parts.get('group', 1))}" + parts.get("more", ""), *to)


def number(size, value):
    return value.to_bytes(size, "big")


def sized(size, *items):
    return number(size, sum(map(len, items))) + b"".join(items)


def hello(names, more=(), version=0x0303, padding=0):
    """The first message of a TLS client; each list of names is an extension of its own."""
    entries = [sized(2, *(number(1, kind) + sized(2, name.encode("latin1")) for kind, name in each)) for each in names]
    extensions = [number(2, 0) + sized(2, content) for content in entries]
    extensions += [number(2, kind) + sized(2, bytes.fromhex(content)) for kind, content in more]
    extensions += [number(2, 21) + sized(2, bytes(padding))] if padding else []
    body = number(2, version) + bytes(32) + b"\x00" + sized(2, b"\xc0\x2f\xc0\x2b\x13\x01") + b"\x01\x00"
    body += sized(2, *extensions) if extensions else b""
    return b"\x01" + sized(3, body)


def tls(host, how, record=16384, size=0, port=443):
    message = hello(**how)
    pieces = [message[at : at + record] for at in range(0, len(message), record)]
    return tcp(host, port, b"".join(b"\x16\x03\x01" + sized(2, piece) for piece in pieces).decode("latin1"), size)


def secured(host, server_name, request):
    """A whole handshake, and a request through it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, 443), WAIT) as plain:
        with context.wrap_socket(plain, server_hostname=server_name) as connection:
            connection.sendall(request.encode("latin1"))
            return told(connection.recv(4096))


def udp(host, port, family="AF_INET", options=()):
    with socket.socket(getattr(socket, family), socket.SOCK_DGRAM) as out:
        out.settimeout(1)
        for option in options:
            out.setsockopt(*option)
        out.connect((host, port))
        out.send(b"secret")
        return out.recv(16) and "answered"


def made(*kind):
    return socket.socket(*kind).close() or "made"


def bound(address, port, family="AF_INET", *options):
    with socket.socket(getattr(socket, family)) as server:
        for option in options:
            server.setsockopt(socket.SOL_SOCKET, option, 1)
        server.bind((address, port))
        return "bound"


def optioned(level, option, value):
    with socket.socket() as out:
        out.setsockopt(level, option, value.encode("latin1") if isinstance(value, str) else value)
        out.settimeout(1)  # what is sent out by the loopback device comes to nobody
        out.connect(("93.184.216.34", 443))
        return "connected"


def fast_open(host, port):
    with socket.socket() as out:
        out.sendto(b"secret", socket.MSG_FASTOPEN, (host, port))
        return "sent"


def netlink(kind, flags, body, protocol=0):
    """One change that is asked of the kernel; the body is the message behind its header."""
    content = bytes.fromhex(body)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as link:
        link.settimeout(1)
        link.send(struct.pack("=IHHII", 16 + len(content), kind, 0x5 | flags, 1, 0) + content)
        code = -struct.unpack("=i", link.recv(4096)[16:20])[0]
        return errno.errorcode.get(code, "done")


def unix(path):
    with socket.socket(socket.AF_UNIX) as out:
        out.connect(path.replace("@", "\0", 1))
        return "connected"


def unshared(flags):
    if (child := os.fork()) == 0:
        try:
            system_call(libc.unshare(flags))
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return errno.errorcode.get(code, "done")


def entered(path):
    return system_call(libc.setns(os.open(path, os.O_RDONLY), 0))


def called(*numbers):
    return system_call(libc.syscall(*numbers))


def stolen(process):
    """A descriptor of another's."""
    libc.syscall.restype = ctypes.c_long
    pidfd = libc.syscall(434, process, 0)
    system_call(pidfd)
    return system_call(libc.syscall(438, pidfd, 0, 0))


def written(path, text):
    with open(path, "w") as file:
        file.write(text)
    return "written"


def sh(line):
    """A program of its own kind: its exit code, and what it printed."""
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    return f"{done.returncode} {done.stdout.strip()[:60]}".strip()


def address(host):
    return socket.gethostbyname(host)


def many(host, count):
    """How many connections are answered at the same time."""
    held, answered = [], 0
    for _ in range(count):
        try:
            connection = socket.create_connection((host, 22), WAIT)
            held.append(connection)
            connection.sendall(b"x")
            answered += connection.recv(1) == b"x"
        except OSError:
            pass
    return answered


if __name__ == "__main__":
    attempts = json.load(sys.stdin)
    print(json.dumps([outcome(lambda: globals()[name](*given)) for name, *given in attempts]))
