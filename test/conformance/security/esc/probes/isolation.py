"""ESC-48, ESC-53, ESC-54: two sandboxes, and the host beside them."""

import ctypes
import json
import os
import sys

from .calls import ERRNO_NAMES, libc, outcome, read_text, stay

IPC_CREAT = 0o1000
SHARED = ["/tmp", "/dev/shm", "/var/tmp", "/run"]


def system_v(key, flags):
    """Shared memory, semaphores and message queues of one key: there, or made with IPC_CREAT."""

    def answer(result):
        return "OK" if result >= 0 else ERRNO_NAMES[ctypes.get_errno()]

    return {
        "memory": answer(libc.shmget(key, 4096 if flags else 0, flags | 0o666)),
        "semaphores": answer(libc.semget(key, 1 if flags else 0, flags | 0o666)),
        "queue": answer(libc.msgget(key, flags | 0o666)),
    }


def posix_queue(name, flags):
    result = libc.mq_open(name.encode(), flags, 0o666, None)
    return "OK" if result >= 0 else ERRNO_NAMES[ctypes.get_errno()]


def make_shared(name, key):
    """Leaves something in every place that could be shared, says so, and stays until its standard input ends."""
    made = {
        "files": {place: outcome(plant, f"{place}/{name}") for place in SHARED},
        "system v": system_v(key, IPC_CREAT),
        "posix queue": posix_queue(f"/{name}", os.O_RDWR | os.O_CREAT),
    }
    stay(made)
    for place in SHARED:
        outcome(os.unlink, f"{place}/{name}")
    for remove, get in ((libc.shmctl, libc.shmget(key, 0, 0)), (libc.msgctl, libc.msgget(key, 0))):
        remove(get, 0, None)  # IPC_RMID
    libc.semctl(libc.semget(key, 0, 0), 0, 0)
    libc.mq_unlink(f"/{name}".encode())
    return made


def plant(path):
    with open(path, "w", encoding="utf8") as file:
        file.write("planted")


def look_for_shared(names, key):
    return {
        "files": {f"{place}/{name}": read_text(f"{place}/{name}") for place in SHARED for name in names},
        "system v": system_v(key, 0),
        "listed": [len(read_text(f"/proc/sysvipc/{kind}").splitlines()) - 1 for kind in ("shm", "sem", "msg")],
        "posix queues": {name: posix_queue(f"/{name}", os.O_RDWR) for name in names},
    }


def wait_for_mount(path):
    """Says what is at the path before and after the host has mounted something there."""
    print(json.dumps(sorted(os.listdir(path))), flush=True)
    sys.stdin.buffer.read()
    return sorted(os.listdir(path))


def neighbours(paths, texts):
    """What can be reached of another sandbox at its paths of the host, and whether /proc names it."""
    proc = [read_text(f"/proc/self/{name}") for name in ("mountinfo", "mounts", "cgroup", "mountstats", "maps")]
    return {
        "paths": {path: outcome(os.stat, path) for path in paths},
        "through process 1": {path: outcome(os.stat, f"/proc/1/root{path}") for path in paths},
        "listed": [text for text in texts if any(text in content for content in proc)],
    }


ATTACKS = {
    "ESC-48-make": make_shared,
    "ESC-48": look_for_shared,
    "ESC-53": wait_for_mount,
    "ESC-54": neighbours,
}
