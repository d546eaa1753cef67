"""ESC-30 to ESC-32 and ESC-45: the kernel's switches in /proc and /sys, and terminals."""

import ctypes
import os
import pty
import stat

from .calls import attempt, open_for, outcome, read_text

NULL = (1, 3)


def opens_for_writing(path):
    """Whether a real file opens for writing; a mask that is /dev/null takes what it gets and keeps nothing."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    found = os.fstat(descriptor)
    os.close(descriptor)
    return not (stat.S_ISCHR(found.st_mode) and (os.major(found.st_rdev), os.minor(found.st_rdev)) == NULL)


def files_below(root, limit):
    seen = 0
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if not os.path.islink(f"{directory}/{name}")]
        for name in files:
            seen += 1
            if seen > limit:
                return
            yield f"{directory}/{name}"


def switches():
    processes = ("self", "thread-self", "sys")
    outer = [f"/proc/{name}" for name in os.listdir("/proc") if not name.isdigit() and name not in processes]
    others = [path for place in outer for path in (files_below(place, 2000) if os.path.isdir(place) else [place])]
    secrets = "kcore kmsg kallsyms kpagecount kpageflags kpagecgroup vmcore sysrq-trigger mem slabinfo"
    return {
        "writable in /proc/sys": [path for path in files_below("/proc/sys", 20000) if opens_for_writing(path)],
        "writable elsewhere in /proc": [path for path in others if opens_for_writing(path)],
        "switches": len(list(files_below("/proc/sys", 20000))) > 100,
        "content": {name: read_text(f"/proc/{name}", 4096) for name in secrets.split()},
    }


def system_tree():
    named = """/sys/kernel/uevent_helper /sys/kernel/debug /sys/kernel/tracing /sys/kernel/security /sys/fs/bpf /sys/power/state
        /sys/kernel/profiling /sys/kernel/mm/transparent_hugepage/enabled /sys/firmware/efi/efivars /sys/kernel/kexec_crash_size"""
    control = list(files_below("/sys/fs/cgroup", 4000))
    candidates = [*named.split(), *control, *files_below("/sys/module", 4000)]
    places = "/sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/unified /sys/kernel/config /sys/fs/bpf"
    there = os.path.isdir("/sys") and bool(os.listdir("/sys"))
    return {
        "writable": [path for path in candidates if opens_for_writing(path)],
        "release agents": [read_text(path) for path in control if path.endswith("release_agent")],
        "made": [outcome(os.mkdir, f"{place}/agentfense-escape") for place in places.split()],
        "traces": outcome(os.listdir, "/sys/kernel/tracing") if os.path.isdir("/sys/kernel/tracing") else "ENOENT",
        "read-only": not there or bool(os.statvfs("/sys").f_flag & os.ST_RDONLY),
    }


def handlers():
    """Programs the kernel starts as root of the host."""
    paths = """/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug /proc/sys/kernel/poweroff_cmd
        /proc/sys/kernel/usermodehelper/bset /proc/sys/fs/binfmt_misc/register /proc/sys/fs/binfmt_misc/status
        /sys/kernel/uevent_helper /proc/sys/kernel/sysrq /proc/sys/vm/drop_caches /proc/sysrq-trigger"""
    return {path: outcome(open_for, path, os.O_WRONLY) for path in paths.split()}


TIOCSTI, TIOCLINUX, TIOCSETD = 0x5412, 0x541C, 0x5423
HIGH = 0x5A5A << 32


def terminals():
    """Typing into a terminal for somebody else: one of our own, and the one this program runs on, if there is one."""
    master, slave = pty.openpty()
    letter, selection = ctypes.create_string_buffer(b"x"), ctypes.create_string_buffer(b"\x02" + bytes(20))
    targets = {"own": slave, "own master": master}
    if os.isatty(0):
        targets["standard input"] = 0
    facts = {}
    for name, descriptor in targets.items():
        facts[name] = {
            "TIOCSTI": attempt("ioctl", descriptor, TIOCSTI, letter),
            "TIOCSTI with high bits": attempt("ioctl", descriptor, TIOCSTI | HIGH, letter),
            "TIOCLINUX": attempt("ioctl", descriptor, TIOCLINUX, selection),
            "TIOCLINUX with high bits": attempt("ioctl", descriptor, TIOCLINUX | HIGH, selection),
            "TIOCSETD": attempt("ioctl", descriptor, TIOCSETD, letter),
        }
    return {
        "typing": facts,
        "controlling": outcome(open_for, "/dev/tty", os.O_RDWR),
        "console": outcome(open_for, "/dev/console", os.O_RDWR),
        "session known": os.getsid(0) != 0,
        "terminal": os.ttyname(0) if os.isatty(0) else None,
    }


ATTACKS = {
    "ESC-30": switches,
    "ESC-31": system_tree,
    "ESC-32": handlers,
    "ESC-45": terminals,
}
