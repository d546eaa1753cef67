"""ESC-09 to ESC-13, ESC-46, ESC-55, ESC-56: what files of the workspace and of the system can be made to do."""

import os
import signal
import socket
import stat
import threading
import time

from .calls import in_child, open_for, outcome, read_text

WORK = "/workspace/work"
DEVICES = {"null": (1, 3), "memory": (1, 1), "disk": (8, 0), "loop": (7, 0), "whiteout": (0, 0), "fuse": (10, 229)}


def make_devices(directory):
    facts = {}
    for name, (major, minor) in DEVICES.items():
        for kind, word in ((stat.S_IFCHR, "character"), (stat.S_IFBLK, "block")):
            path = f"{directory}/{name}-{word}"
            facts[f"{word} {name} in {directory}"] = outcome(os.mknod, path, kind | 0o666, os.makedev(major, minor))
    return facts


def device_nodes():
    return make_devices(WORK)


def device_nodes_everywhere():
    places = ["/tmp", "/dev", "/dev/shm", "/run", "/var/tmp", "/home", "/", WORK, os.environ.get("HOME", "/root")]
    return {name: end for place in places if os.path.isdir(place) for name, end in make_devices(place).items()}


def set_id_bits():
    os.umask(0)
    os.chdir(WORK)

    def created(name, mode):
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT, mode))

    ways = {
        "open": lambda name, bits: created(name, bits | 0o755),
        "chmod": lambda name, bits: (created(name, 0o755), os.chmod(name, bits | 0o755)),
        "fchmod": lambda name, bits: change_open(name, bits | 0o755),
        "mknod": lambda name, bits: os.mknod(name, stat.S_IFREG | bits | 0o755),
        "mkfifo": lambda name, bits: os.mkfifo(name, bits | 0o644),
        "mkdir": lambda name, bits: os.mkdir(name, bits | 0o755),
        "chmod of a directory": lambda name, bits: (os.mkdir(name), os.chmod(name, bits | 0o755)),
    }

    def change_open(name, mode):
        created(name, 0o755)
        descriptor = os.open(name, os.O_RDONLY)
        os.fchmod(descriptor, mode)
        os.close(descriptor)

    facts = {}
    for way, make in ways.items():
        for bits in (0o4000, 0o2000, 0o6000):
            name = f"{way.replace(' ', '-')}-{bits:o}"
            outcome(make, name, bits)
            mode = os.lstat(name).st_mode if os.path.lexists(name) else 0
            facts[f"{way} {bits:o}"] = f"{mode & 0o6000:o}"
    facts["of the codebase"] = f"{os.lstat('/workspace/setuid-id').st_mode & 0o6000:o}"
    return facts


# VFS_CAP_REVISION_2 with every capability permitted and effective.
ALL_CAPABILITIES = bytes.fromhex("01000002ffffffff00000000ffffffff00000000")


def dangerous_attributes():
    path = f"{WORK}/attributed"
    with open(path, "w", encoding="utf8"):
        pass
    attributes = {
        "security.capability": ALL_CAPABILITIES,
        "security.selinux": b"system_u:object_r:bin_t:s0\0",
        "security.apparmor": b"x",
        "security.ima": b"x",
        "trusted.overlay.opaque": b"y",
        "trusted.overlay.redirect": b"/etc",
        "trusted.any": b"x",
    }
    descriptor = os.open(path, os.O_RDWR)
    places = {"path": path, "descriptor": descriptor, "directory": WORK, "codebase file": f"{WORK}/notes.txt"}
    refusals = {
        f"{name} by {word}": outcome(os.setxattr, place, name, value)
        for word, place in places.items()
        for name, value in attributes.items()
    }
    return {"refusals": refusals, "names": {word: os.listxattr(place) for word, place in places.items()}}


def mounts():
    """Every mount: where, its type, and its options."""
    facts = {}
    for line in read_text("/proc/self/mountinfo").splitlines():
        left, right = line.split(" - ", 1)
        facts[left.split()[4]] = {
            "type": right.split()[0],
            "options": left.split()[5].split(","),
            "propagation": [word for word in left.split()[6:] if ":" in word],
        }
    return facts


def mount_options():
    return mounts()


def pipes_and_sockets():
    """Makes a fifo and a socket in the workspace, looks at those of the codebase, and leaves a reader waiting in one."""
    os.chdir(WORK)
    server = socket.socket(socket.AF_UNIX)
    return {
        "made": [outcome(os.mkfifo, "own.fifo"), outcome(server.bind, "own.sock")],
        "codebase fifo": stat.S_ISFIFO(os.stat("/workspace/pipes/old.fifo").st_mode),
        "codebase socket": outcome(socket.socket(socket.AF_UNIX).connect, "/workspace/pipes/old.sock"),
        "open without waiting": outcome(
            lambda: os.close(os.open("/workspace/pipes/old.fifo", os.O_RDONLY | os.O_NONBLOCK))
        ),
        # A reader that nobody will ever write to; the sandbox is stopped over it.
        "waiting": leave_waiting("own.fifo") if os.path.exists("own.fifo") else 0,
    }


def leave_waiting(path):
    if os.fork() == 0:
        os.setsid()
        quiet = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        os.open(path, os.O_RDONLY)
        os._exit(0)
    time.sleep(0.1)
    return 1


SYSTEM = """/ /usr /usr/bin /usr/lib /usr/local /bin /sbin /lib /lib64 /etc /root /var /var/lib /var/tmp /home /opt /srv
    /mnt /media /boot /run /sys /proc"""
SYSTEM_FILES = "/etc/passwd /etc/hosts /etc/ld.so.cache /etc/resolv.conf /usr/bin/env /bin/sh /usr/lib/os-release"


def write_system(name):
    """Plants a file in each directory, and tries to change what is there."""
    planted = {}
    for place in SYSTEM.split():
        path = f"{place.rstrip('/')}/{name}"
        planted[place] = outcome(open_for, path, os.O_WRONLY | os.O_CREAT)
    changed = {}
    for path in SYSTEM_FILES.split():
        if not os.path.exists(path):
            continue
        changed[f"open {path}"] = outcome(open_for, path, os.O_WRONLY)
        changed[f"chmod {path}"] = outcome(os.chmod, path, 0o777)
        changed[f"rename {path}"] = outcome(os.rename, path, f"{path}.{name}")
        changed[f"unlink {path}"] = outcome(os.unlink, f"{os.path.dirname(path)}/{name}")
        changed[f"utime {path}"] = outcome(os.utime, path, (1, 1))
    return {"planted": planted, "changed": changed}


def abuse_file_system(seconds):
    """Requests no program makes: offsets beyond reason, interrupts in the middle, names come and gone by the thousand."""
    os.chdir(WORK)
    with open("abused", "w", encoding="utf8") as file:
        file.write("abused")
    descriptor = os.open("abused", os.O_RDWR)
    top = (1 << 63) - 1
    odd = {
        "pread -1": outcome(os.pread, descriptor, 10, -1),
        "pread top": outcome(os.pread, descriptor, 10, top - 20),
        "pwrite top": outcome(os.pwrite, descriptor, b"x" * 100, top - 10),
        "lseek -1": outcome(os.lseek, descriptor, -1, os.SEEK_SET),
        "truncate -1": outcome(os.ftruncate, descriptor, -1),
        "truncate top": outcome(os.ftruncate, descriptor, top),
        "fallocate -1": outcome(os.posix_fallocate, descriptor, -1, 10),
        "long name": outcome(os.mkdir, "n" * 256),
        "long path": outcome(os.mkdir, "/".join(["n" * 200] * 30)),
        "seek of a directory": in_child(seek_directory),
    }
    in_child(lambda: interrupts(seconds))
    forget_names()
    os.ftruncate(descriptor, 6)
    return {"odd": odd, "afterwards": read_text("abused")}


def seek_directory():
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    for offset in (1, 12345, (1 << 31) - 1, 1 << 40, (1 << 63) - 1):
        outcome(os.lseek, directory, offset, os.SEEK_SET)
        outcome(os.listdir, directory)
    return "OK"


def interrupts(seconds):
    """Signals arrive all the time while threads read, write, stat and list."""
    end = time.monotonic() + seconds
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)

    def work(index):
        count = 0
        while time.monotonic() < end:
            name = f"storm-{index}-{count % 7}"
            with open(name, "wb") as file:
                file.write(os.urandom(5000))
            with open(name, "rb") as file:
                file.read()
            os.listdir(".")
            os.unlink(name)
            count += 1

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    signal.setitimer(signal.ITIMER_REAL, 0)
    return "OK"


def forget_names():
    """Each name the kernel drops is a message to the server that has no answer."""
    for index in range(2000):
        outcome(os.stat, f"absent-{index}")
    for index in range(500):
        os.mkdir(f"forget-{index}")
    for index in range(500):
        os.rmdir(f"forget-{index}")


HOST_RUNS_THESE = """.git/hooks/pre-commit .git/config .npmrc package.json .vscode/settings.json .vscode/tasks.json .env
    .envrc .husky/pre-commit Makefile .bashrc .gitattributes .editorconfig pyproject.toml sitecustomize.py src/.env
    src/package.json src/.git/hooks/post-checkout output/.git/hooks/pre-commit output/.env output/.npmrc output/package.json"""


def plant_for_host():
    os.chdir("/workspace")

    def plant(path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf8") as file:
            file.write("run by the host")

    return {path: outcome(plant, path) for path in HOST_RUNS_THESE.split()}


ATTACKS = {
    "ESC-09": device_nodes,
    "ESC-10": set_id_bits,
    "ESC-11": dangerous_attributes,
    "ESC-12": mount_options,
    "ESC-13": pipes_and_sockets,
    "ESC-16-nodes": device_nodes_everywhere,
    "ESC-46": write_system,
    "ESC-55": abuse_file_system,
    "ESC-56": plant_for_host,
}
