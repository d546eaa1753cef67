"""ESC-41 to ESC-44: the network."""

import socket
from concurrent.futures import ThreadPoolExecutor

from .calls import ERRNO_NAMES, attempt, read_text


def reach(family, kind, address, timeout=2.0, device=None):
    """What a connection ends in; a datagram is sent, which for the kernel needs a route, or a device named by hand."""
    try:
        with socket.socket(family, kind) as client:
            client.settimeout(timeout)
            if device is not None:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            client.connect(address)
            if kind == socket.SOCK_DGRAM:
                client.send(b"agentfense")
            return "OK"
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return ERRNO_NAMES.get(error.errno, str(error))


def abstract_sockets(names):
    """Sockets without a file, which belong to a network namespace."""
    return {
        f"{word} {name}": reach(socket.AF_UNIX, kind, "\0" + name)
        for name in names
        for word, kind in (("stream", socket.SOCK_STREAM), ("datagram", socket.SOCK_DGRAM), ("packet", socket.SOCK_SEQPACKET))
    } | {"listed": [name for name in names if name in read_text("/proc/net/unix")]}


def addresses(targets, names):
    """Connects to every [address, port], also bound to each device, in parallel, and looks up every name."""
    devices = [name for _, name in socket.if_nameindex() if name != "lo"]

    def one(target):
        address, port = target
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        answer = {}
        for device in [None, *devices]:
            name = f"{address}:{port}" if device is None else f"{address}:{port} by {device}"
            answer[f"tcp {name}"] = reach(family, socket.SOCK_STREAM, (address, port), device=device)
            answer[f"udp {name}"] = reach(family, socket.SOCK_DGRAM, (address, port), device=device)
        return answer

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, targets))
    return {
        "reached": {key: value for answer in answers for key, value in answer.items()},
        "names": {name: resolve(name) for name in names},
        "interfaces": sorted(name for _, name in socket.if_nameindex()),
        "routes": read_text("/proc/net/route").splitlines()[1:],
    }


def resolve(name):
    try:
        return socket.getaddrinfo(name, 80)[0][4][0]
    except OSError:
        return "unknown"


# Families and types by number: what the headers of one machine lack is still worth a try.
FAMILIES = {
    "AX25": 3, "IPX": 4, "APPLETALK": 5, "NETROM": 6, "X25": 9, "KEY": 15, "PACKET": 17, "ECONET": 19, "ATMSVC": 20, "RDS": 21,
    "LLC": 26, "IB": 27, "MPLS": 28, "CAN": 29, "TIPC": 30, "BLUETOOTH": 31, "RXRPC": 33, "PHONET": 35, "IEEE802154": 36,
    "CAIF": 37, "ALG": 38, "NFC": 39, "VSOCK": 40, "KCM": 41, "QIPCRTR": 42, "SMC": 43, "XDP": 44, "MCTP": 45,
}
INET, INET6, NETLINK = 2, 10, 16
STREAM, DGRAM, RAW, SEQPACKET, PACKET = 1, 2, 3, 5, 10
CLOEXEC, HIGH = 0o2000000, 1 << 32


def raw_sockets():
    kinds = {"stream": STREAM, "datagram": DGRAM, "raw": RAW, "seqpacket": SEQPACKET}
    refused = {
        f"{family} {word}": attempt("socket", value, kind, 0)
        for family, value in FAMILIES.items()
        for word, kind in kinds.items()
    }
    for word, kind in (("VSOCK", STREAM), ("PACKET", RAW), ("ALG", SEQPACKET)):
        refused[f"{word} with a high bit"] = attempt("socket", FAMILIES[word] | HIGH, kind, 0)
        refused[f"{word} as a pair"] = attempt("socketpair", FAMILIES[word], STREAM, 0, bytes(8))
    for word, family in (("INET", INET), ("INET6", INET6)):
        for protocol in (1, 6, 17, 58, 255):
            refused[f"{word} raw {protocol}"] = attempt("socket", family, RAW, protocol)
            refused[f"{word} raw {protocol} with flags"] = attempt("socket", family, RAW | CLOEXEC | 0o4000, protocol)
            refused[f"{word} raw {protocol} with a high bit"] = attempt("socket", family, RAW | HIGH, protocol)
        refused[f"{word} packet"] = attempt("socket", family, PACKET, 0x300)
    allowed = {
        "tcp": attempt("socket", INET, STREAM | CLOEXEC, 0),
        "udp": attempt("socket", INET6, DGRAM, 0),
        "unix": attempt("socket", 1, STREAM, 0),
        "unix pair": attempt("socketpair", 1, STREAM, 0, bytes(8)),
    }
    return {"refused": refused, "allowed": allowed}


ATTACKS = {
    "ESC-41": abstract_sockets,
    "ESC-42": addresses,
    "ESC-43": raw_sockets,
    "ESC-44": addresses,
}
