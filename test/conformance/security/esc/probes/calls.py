"""System calls by name, and what they answer: "OK", the name of an errno, or the name of the signal they died of."""

import ctypes
import errno
import json
import os
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86_64 = os.uname().machine == "x86_64"
AT_FDCWD = -100
# Python's table has one name per number, and for this one the name nobody uses.
ERRNO_NAMES = {**errno.errorcode, errno.EOPNOTSUPP: "EOPNOTSUPP"}

# Numbers on x86-64 and arm64; None where the architecture has no such call. From 424 on they are the same everywhere.
NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_mempolicy": (239, 236),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setattr": (314, 274),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "tgkill": (234, 131),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}


def number(name):
    return NUMBERS[name][0 if X86_64 else 1]


def call(name, *arguments):
    """The result of a raw system call; raises OSError. Addresses may be given as bytes."""
    return call_number(number(name), *arguments)


def call_number(nr, *arguments):
    # An absent call is tried under a number nobody has.
    wide = [argument if isinstance(argument, (bytes, ctypes.Array, type(ctypes.byref(ctypes.c_int())))) or argument is None
            else ctypes.c_ulong(argument & 0xFFFF_FFFF_FFFF_FFFF) for argument in arguments]
    result = libc.syscall(ctypes.c_long(9999 if nr is None else nr), *wide)
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result


def outcome(action, *arguments):
    """What an action ends in, in this process."""
    try:
        action(*arguments)
        return "OK"
    except OSError as error:
        return ERRNO_NAMES.get(error.errno, str(error.errno))


def attempt(name, *arguments):
    """What a raw system call ends in, made in a process of its own: a success must not change who goes on asking."""
    return in_child(lambda: outcome(call, name, *arguments))


def in_child(action):
    """What `action` returns in a child process, or the signal that ended the child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.write(writer, json.dumps(action()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return json.loads(text) if text else "no answer"


def read_text(path, limit=1 << 20):
    """The content of a file, or the name of the errno in angle brackets."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            content = b""
            # Files of /proc come a page at a time.
            while len(content) < limit and (piece := os.read(descriptor, limit - len(content))):
                content += piece
            return content.decode("utf8", "replace")
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"<{ERRNO_NAMES[error.errno]}>"


def status_fields(pid, names):
    """Chosen lines of /proc/PID/status."""
    lines = dict(line.split(":\t", 1) for line in read_text(f"/proc/{pid}/status").splitlines() if ":\t" in line)
    return {name: lines[name] for name in names if name in lines}


def process_ids():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def open_for(path, flags):
    descriptor = os.open(path, flags)
    os.close(descriptor)


def stay(facts):
    """Says the facts and keeps the process until its standard input ends."""
    print(json.dumps(facts), flush=True)
    sys.stdin.buffer.read()
    return facts
