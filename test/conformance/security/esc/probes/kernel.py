"""ESC-18 to ESC-23 and ESC-33 to ESC-37: the kernel's doors. Arguments are such that a success would do no harm."""

import ctypes
import mmap
import os
import signal
import struct
import time

from .calls import (
    AT_FDCWD, ERRNO_NAMES, X86_64, attempt, call, call_number, in_child, number, outcome, process_ids, read_text, status_fields
)

NAMESPACES = {
    "TIME": 0x80,
    "NS": 0x20000,
    "CGROUP": 0x2000000,
    "UTS": 0x4000000,
    "IPC": 0x8000000,
    "USER": 0x10000000,
    "PID": 0x20000000,
    "NET": 0x40000000,
}
# clone has no room for the time namespace: its bit is part of the exit signal.
CLONED = {name: flag for name, flag in NAMESPACES.items() if name != "TIME"}
HIGH_BIT = 1 << 32
TMP = b"/tmp"


def filter_of_every_process():
    return {str(pid): status_fields(pid, ["Seccomp", "Seccomp_filters"]) for pid in process_ids()}


def refused_calls():
    """Calls Docker's default filter refuses, made so that without a filter most of them would work or say EFAULT, EINVAL."""
    pid, page = os.getpid(), ctypes.create_string_buffer(8192)
    arguments = {
        "acct": [b"/nowhere"],
        "add_key": [b"user", b"name", b"value", 5, -2 & 0xFFFFFFFF],
        "bpf": [0, page, 72],
        "clock_settime": [0, page],
        "create_module": [b"name", 1],
        "delete_module": [b"name", 0],
        "fanotify_init": [0, 0],
        "finit_module": [-1, b"", 0],
        "fsopen": [b"tmpfs", 0],
        "get_mempolicy": [None, None, 0, None, 0],
        "init_module": [page, 8, b""],
        "io_uring_setup": [1, page],
        "kcmp": [pid, pid, 0, 0, 0],
        "kexec_file_load": [-1, -1, 0, b"", 0],
        "kexec_load": [0, 0, None, 0],
        "keyctl": [0, -3 & 0xFFFFFFFF, 0],
        "lookup_dcookie": [0, page, 100],
        "mbind": [None, 0, 0, None, 0, 0],
        "migrate_pages": [0, 0, None, None],
        "mount_setattr": [AT_FDCWD, TMP, 0, page, 32],
        "move_mount": [AT_FDCWD, TMP, AT_FDCWD, TMP, 0],
        "move_pages": [0, 0, None, None, None, 0],
        "nfsservctl": [0, None, None],
        "open_by_handle_at": [AT_FDCWD, page, 0],
        "open_tree": [AT_FDCWD, TMP, 1],
        "perf_event_open": [page, 0, -1, -1, 0],
        "personality": [0x0400000],
        "pivot_root": [TMP, TMP],
        "process_madvise": [-1, None, 0, 0, 0],
        "quotactl": [0, None, 0, None],
        "quotactl_fd": [-1, 0, 0, None],
        "request_key": [b"user", b"name", None, 0],
        "set_mempolicy": [0, None, 0],
        "set_mempolicy_home_node": [0, 0, 0, 0],
        "setns": [-1, 0],
        "settimeofday": [None, page],
        "swapoff": [b"/nowhere"],
        "swapon": [b"/nowhere", 0],
        "sysfs": [3],
        "syslog": [10, None, 0],
        "umount2": [b"/nowhere", 0],
        "unshare": [0x20000],
        "uselib": [b"/nowhere"],
        "userfaultfd": [1],
        "ustat": [0, page],
        "vhangup": [],
    }
    return {name: attempt(name, *values) for name, values in arguments.items() if number(name) is not None}


def other_ways_to_number():
    """The same calls under the numbers of other interfaces of this kernel, and numbers nobody has."""
    facts = {
        "unknown 500": in_child(lambda: outcome(call_number, 500)),
        "unknown 1000": in_child(lambda: outcome(call_number, 1000)),
        "unknown -2": in_child(lambda: outcome(call_number, -2)),
    }
    if X86_64:
        user = NAMESPACES["USER"]
        facts["x32 unshare"] = in_child(lambda: outcome(call_number, 0x40000000 | 272, user))
        facts["x32 io_uring_setup"] = in_child(lambda: outcome(call_number, 0x40000000 | 425, 1, None))
        # i386: unshare 310, socketcall 102 (1: socket), keyctl 288, mount 21
        facts["i386 unshare"] = in_child(lambda: by_interrupt(310, user, 0))
        facts["i386 keyctl"] = in_child(lambda: by_interrupt(288, 0, 0))
        facts["i386 mount"] = in_child(lambda: by_interrupt(21, 0, 0))
    return facts


def by_interrupt(nr, first, second):
    """A system call by `int 0x80`, the 32 bit way in."""
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, edi; mov ebx, esi; mov ecx, edx; xor edx, edx; int 0x80; pop rbx; ret
    code.write(bytes.fromhex("53 89f8 89f3 89d1 31d2 cd80 5b c3"))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(address)
    result = function(nr, first, second)
    return ERRNO_NAMES.get(-result, str(-result)) if result < 0 else "OK"


def clone(flags):
    """A raw clone; the child, if there is one, ends at once."""
    child = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def clone3(flags):
    arguments = ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0))
    child = call("clone3", arguments, 88)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def user_namespaces():
    user = NAMESPACES["USER"]
    return {
        "unshare": attempt("unshare", user),
        "unshare with others": {name: attempt("unshare", user | flag) for name, flag in NAMESPACES.items()},
        "unshare of more": attempt("unshare", user | 0x400),  # CLONE_FILES
        "clone": in_child(lambda: outcome(clone, user)),
        "clone with others": {
            name: in_child(lambda flag=flag: outcome(clone, user | flag)) for name, flag in CLONED.items()
        },
        "clone with a high bit": in_child(lambda: outcome(clone, user | HIGH_BIT)),
        "clone as a thread": in_child(lambda: outcome(clone, user | 0x100)),  # CLONE_VM
        "clone3": in_child(lambda: outcome(clone3, user)),
        "clone3 of nothing": in_child(lambda: outcome(clone3, 0)),
        "a plain clone": in_child(lambda: outcome(clone, 0)),
    }


def other_namespaces():
    own = {name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in os.listdir("/proc/self/ns")}
    pidfd = call("pidfd_open", 1, 0)
    return {
        "unshare": {name: attempt("unshare", flag) for name, flag in NAMESPACES.items()},
        "clone": {
            name: in_child(lambda flag=flag: outcome(clone, flag)) for name, flag in CLONED.items()
        },
        "clone with a high bit": {
            name: in_child(lambda flag=flag: outcome(clone, flag | HIGH_BIT)) for name, flag in CLONED.items()
        },
        "clone3": {name: in_child(lambda flag=flag: outcome(clone3, flag)) for name, flag in NAMESPACES.items()},
        "setns": {name: attempt("setns", descriptor, 0) for name, descriptor in own.items()},
        "setns by process": {name: attempt("setns", pidfd, flag) for name, flag in NAMESPACES.items()},
    }


def mounting():
    bind, nothing = 0x1000, None
    overlay = b"lowerdir=/usr,upperdir=/tmp/u,workdir=/tmp/w"
    return {
        "tmpfs": attempt("mount", b"none", TMP, b"tmpfs", 0, nothing),
        "proc": attempt("mount", b"proc", TMP, b"proc", 0, nothing),
        "sysfs": attempt("mount", b"sysfs", TMP, b"sysfs", 0, nothing),
        "cgroup": attempt("mount", b"cgroup", TMP, b"cgroup", 0, b"memory"),
        "devpts": attempt("mount", b"devpts", TMP, b"devpts", 0, nothing),
        "bind": attempt("mount", b"/usr", TMP, nothing, bind, nothing),
        "move": attempt("mount", b"/workspace", TMP, nothing, 0x2000, nothing),
        "shared": attempt("mount", nothing, b"/", nothing, 0x100000 | 0x4000, nothing),
        "overlay": attempt("mount", b"overlay", TMP, b"overlay", 0, overlay),
        "fuse": attempt("mount", b"x", TMP, b"fuse", 0, b"fd=0,rootmode=40000,user_id=0,group_id=0"),
        "fsopen": attempt("fsopen", b"tmpfs", 0),
        "fsconfig": attempt("fsconfig", 0, 6, nothing, nothing, 0),
        "fsmount": attempt("fsmount", 0, 0, 0),
        "fspick": attempt("fspick", AT_FDCWD, b"/", 0),
        "open_tree": attempt("open_tree", AT_FDCWD, b"/workspace", 1),
        "open_tree without a copy": attempt("open_tree", AT_FDCWD, b"/workspace", 0),
        "open_tree_attr": attempt("open_tree_attr", AT_FDCWD, b"/workspace", 1, nothing, 0),
        "move_mount": attempt("move_mount", AT_FDCWD, b"/workspace", AT_FDCWD, TMP, 0),
    }


def changing_mounts():
    remount, readonly_off = 0x20, ctypes.create_string_buffer(struct.pack("4Q", 0, 1, 0, 0))
    return {
        "remount /usr": attempt("mount", None, b"/usr", None, remount | 0x1000, None),
        "remount /": attempt("mount", None, b"/", None, remount, None),
        "remount /workspace suid": attempt("mount", None, b"/workspace", None, remount | 0x1000, None),
        "remount /proc": attempt("mount", None, b"/proc", None, remount | 0x1000, None),
        "umount /workspace": attempt("umount2", b"/workspace", 0),
        "umount /workspace lazily": attempt("umount2", b"/workspace", 2),
        "umount /proc/sys": attempt("umount2", b"/proc/sys", 2),
        "umount /": attempt("umount2", b"/", 2),
        "pivot_root": attempt("pivot_root", TMP, TMP),
        "chroot": attempt("chroot", TMP),
        "mount_setattr": attempt("mount_setattr", AT_FDCWD, b"/usr", 0, readonly_off, 32),
    }


def handles():
    """Opens files by handle: real ones, and the root of each file system as inode 2 (and its neighbours)."""
    facts = {}
    for place in (b"/usr", b"/workspace", b"/tmp", b"/", b"/etc"):
        mount = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        real = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
        mount_id = ctypes.c_int()
        named = outcome(call, "name_to_handle_at", AT_FDCWD, place, real, ctypes.byref(mount_id), 0)
        candidates = {f"inode {inode}": handle_of(inode) for inode in (2, 64, 128, 256)}
        if named == "OK":
            candidates["own handle"] = real
        for name, handle in candidates.items():
            facts[f"{name} of {place.decode()}"] = attempt("open_by_handle_at", mount, handle, 0)
            os.chdir(place)
            facts[f"{name} from {place.decode()} as cwd"] = attempt("open_by_handle_at", AT_FDCWD, handle, 0)
        os.close(mount)
    return facts


def handle_of(inode):
    """A handle as ext4 and xfs make them: the inode's number and any generation."""
    return ctypes.create_string_buffer(struct.pack("IiII", 8, 1, inode, 0))


def kernel_code():
    nowhere = b"/nowhere"
    return {
        "init_module": attempt("init_module", b"\x7fELF", 4, b""),
        "finit_module": attempt("finit_module", 0, b"", 0),
        "delete_module": attempt("delete_module", b"nothing", 0x800),
        "kexec_load": attempt("kexec_load", 0, 0, None, 0),
        "kexec_file_load": attempt("kexec_file_load", 0, 0, 0, b"", 0),
        # Wrong magic numbers: whoever may reboot is told EINVAL.
        "reboot": attempt("reboot", 0, 0, 0, None),
        "swapon": attempt("swapon", nowhere, 0),
        "swapoff": attempt("swapoff", nowhere),
        "acct": attempt("acct", nowhere),
    }


def ports():
    return {"iopl": attempt("iopl", 3), "ioperm": attempt("ioperm", 0x80, 1, 1)} if X86_64 else {}


def large_interfaces():
    # struct perf_event_attr: a software clock, of user space only
    event = ctypes.create_string_buffer(struct.pack("IIQ24xQ80x", 1, 128, 0, 0b1100000))
    bpf_map = ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1) + bytes(56))
    bpf_program = ctypes.create_string_buffer(struct.pack("II", 1, 2) + bytes(112))
    ring = ctypes.create_string_buffer(120)
    return {
        "bpf map": attempt("bpf", 0, bpf_map, 72),
        "bpf program": attempt("bpf", 5, bpf_program, 120),
        "bpf by id": attempt("bpf", 11, bpf_map, 72),
        "perf_event_open": attempt("perf_event_open", event, 0, -1, -1, 0),
        "perf_event_open of all": attempt("perf_event_open", event, -1, 0, -1, 0),
        "userfaultfd": attempt("userfaultfd", 0),
        "userfaultfd of user space": attempt("userfaultfd", 1),
        "io_uring_setup": attempt("io_uring_setup", 4, ring),
        "io_uring_enter": attempt("io_uring_enter", 0, 0, 0, 0, None, 0),
        "io_uring_register": attempt("io_uring_register", 0, 0, None, 0),
    }


def keys():
    session, user = -3 & 0xFFFFFFFF, -4 & 0xFFFFFFFF
    return {
        "add_key": attempt("add_key", b"user", b"agentfense", b"value", 5, user),
        "request_key": attempt("request_key", b"user", b"agentfense", None, 0),
        **{
            f"keyctl {name}": attempt("keyctl", operation, target, 0, 0, 0)
            for name, operation, target in (("GET_KEYRING_ID", 0, user), ("JOIN_SESSION", 1, 0), ("DESCRIBE", 6, session),
                                            ("READ", 11, user), ("LINK", 8, user), ("GET_PERSISTENT", 22, 0))
        },
    }


def kernel_log():
    buffer = ctypes.create_string_buffer(4096)
    return {
        "calls": {
            name: attempt("syslog", action, buffer, 4096)
            for name, action in (("READ", 2), ("READ_ALL", 3), ("READ_CLEAR", 4), ("CONSOLE_OFF", 6), ("SIZE_BUFFER", 10))
        },
        "/dev/kmsg": read_text("/dev/kmsg"),
        "/proc/kmsg": read_text("/proc/kmsg"),
    }


def clocks():
    now = time.time()
    spec = ctypes.create_string_buffer(struct.pack("qq", int(now), 0))
    frequency = ctypes.create_string_buffer(struct.pack("I4xq", 2, 0) + bytes(200))  # ADJ_FREQUENCY
    return {
        "sethostname": attempt("sethostname", b"changed", 7),
        "setdomainname": attempt("setdomainname", b"changed", 7),
        "clock_settime": attempt("clock_settime", 0, spec),
        "settimeofday": attempt("settimeofday", spec, None),
        "clock_adjtime": attempt("clock_adjtime", 0, frequency),
        "adjtimex": attempt("adjtimex", frequency),
    }


def host_name_and_clock():
    return {"name": os.uname().nodename, "domain": read_text("/proc/sys/kernel/domainname").strip(), "calls": clocks()}


ATTACKS = {
    "ESC-18": filter_of_every_process,
    "ESC-18-calls": refused_calls,
    "ESC-18-numbers": other_ways_to_number,
    "ESC-19": user_namespaces,
    "ESC-20": other_namespaces,
    "ESC-21": mounting,
    "ESC-22": changing_mounts,
    "ESC-23": handles,
    "ESC-33": kernel_code,
    "ESC-34": ports,
    "ESC-35": large_interfaces,
    "ESC-36": keys,
    "ESC-37": kernel_log,
    "ESC-38": host_name_and_clock,
}
