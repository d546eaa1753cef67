"""ESC-01 to ESC-07: leaving the workspace by the names of files. `outside` is a directory of the host."""

import ctypes
import os
import shutil
import signal

from .calls import call, outcome, read_text

WORK = "/workspace/work"


def codebase_links(outside):
    os.chdir("/workspace/links")
    return {
        "links": {name: {"target": os.readlink(name), "content": read_text(name)} for name in sorted(os.listdir("."))},
        "below": read_text("outside-directory/secret.txt"),
        "passwd inside": read_text("/etc/passwd"),
        "write": {name: outcome(write_through, name) for name in sorted(os.listdir("."))},
    }


def write_through(path):
    with open(path, "a", encoding="utf8") as file:
        file.write("changed by the agent")


def attributes_of_links(outside):
    own = f"{WORK}/own-link"
    os.symlink(f"{outside}/secret.txt", own)
    facts = {}
    for link in ("/workspace/work/outside-link", own):
        facts[os.path.basename(link)] = {
            "chmod": outcome(os.chmod, link, 0o777),
            "chown": outcome(os.chown, link, os.getuid(), os.getgid()),
            "utime": outcome(os.utime, link, (1, 1)),
            "truncate": outcome(os.truncate, link, 0),
            "setxattr": outcome(os.setxattr, link, "user.any", b"value"),
            # The link itself: allowed or not, it must be the link that changes.
            "ignored": [
                outcome(lambda: os.lchown(link, os.getuid(), os.getgid())),
                outcome(lambda: os.utime(link, (1, 1), follow_symlinks=False)),
                outcome(lambda: os.setxattr(link, "user.any", b"value", follow_symlinks=False)),
                outcome(lambda: os.chown(link, 12345, 12345, follow_symlinks=False)),
            ],
        }
    return facts


def link_named_like_directory(outside):
    facts = {}
    for name in ("own", "sub"):  # one of the agent, one of the codebase
        home = f"{WORK}/{name}"
        os.makedirs(home, exist_ok=True)
        os.chdir(home)
        os.symlink(outside, name)
        facts[name] = {
            "read": read_text("secret.txt"),
            "read below": read_text(f"{name}/secret.txt"),
            "read by path": read_text(f"{home}/{name}/secret.txt"),
            "list": outcome(os.listdir, name),
            "create": outcome(write_through, f"{name}/planted.txt"),
            "create beside": outcome(write_through, "planted.txt"),
            "names": sorted(os.listdir(home)),
        }
        os.chdir("/")
    return facts


def stale_directory(outside):
    facts = {}
    for name in ("held", "sub"):
        home = f"{WORK}/{name}"
        os.makedirs(home, exist_ok=True)
        handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        moved = outcome(os.rename, home, f"{home}-moved")
        if moved != "OK":
            shutil.rmtree(home)
        os.symlink(outside, home)
        facts[name] = {
            "moved": moved,
            "read": outcome(lambda: os.close(os.open("secret.txt", os.O_RDONLY, dir_fd=handle))),
            "create": outcome(
                lambda: os.close(os.open("planted.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=handle))
            ),
            "read moved": read_text(f"{home}-moved/secret.txt"),
            "through /proc": read_text(f"/proc/self/fd/{handle}/secret.txt"),
            "through link": read_text(f"{home}/secret.txt"),
        }
        os.close(handle)
    return facts


def stale_file(outside):
    facts = {}
    for name, before in (("own.txt", "own content"), ("notes.txt", None)):
        path = f"{WORK}/{name}"
        if before is not None:
            with open(path, "w", encoding="utf8") as file:
                file.write(before)
        handle = os.open(path, os.O_RDWR)
        os.rename(path, f"{path}.moved")
        os.symlink(f"{outside}/secret.txt", path)
        reopened = f"/proc/self/fd/{handle}"
        facts[name] = {
            "read": read_text(reopened),
            "write": outcome(write_through, reopened),
            "truncate": outcome(os.truncate, reopened, 3),
            "moved": read_text(f"{path}.moved"),
        }
        os.close(handle)
    return facts


def swap_race(outside, rounds):
    """One process flips a name between an own file and a link to the outside; the other uses the name."""
    name, spare, link = f"{WORK}/flip", f"{WORK}/flip.file", f"{WORK}/flip.link"
    flipper = os.fork()
    while flipper == 0:  # until it is killed
        for make in (lambda: write_new(spare, "mine"), lambda: os.symlink(f"{outside}/secret.txt", link)):
            outcome(make)
            outcome(os.rename, spare if os.path.lexists(spare) else link, name)
    uses = [
        lambda: read_text(name),
        lambda: outcome(write_through, name),
        lambda: outcome(os.truncate, name, 0),
        lambda: outcome(os.chmod, name, 0o666),
        lambda: outcome(os.utime, name),
        lambda: outcome(lambda: os.close(os.open(name, os.O_RDWR | os.O_NOFOLLOW))),
        lambda: outcome(os.link, name, f"{name}.copy"),
        lambda: outcome(os.unlink, f"{name}.copy"),
    ]
    seen = {use() for _ in range(rounds) for use in uses}
    os.kill(flipper, signal.SIGKILL)
    os.waitpid(flipper, 0)
    return sorted(seen)


def write_new(path, content):
    with open(path, "w", encoding="utf8") as file:
        file.write(content)


def copy_up_below_link(outside):
    """A codebase file stays open while its directory gives way to a link; then the open file asks for a copy-up."""
    home = f"{WORK}/deep"
    handle = os.open(f"{home}/secret.txt", os.O_RDONLY)
    directory = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    shutil.rmtree(home)
    os.symlink(outside, home)
    reopened = f"/proc/self/fd/{handle}"
    return {
        "write": outcome(write_through, reopened),
        "truncate": outcome(os.truncate, reopened, 0),
        "chmod": outcome(os.fchmod, handle, 0o666),
        "create": outcome(lambda: os.open("planted.txt", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=directory)),
        "link": outcome(lambda: os.link(reopened, f"{WORK}/linked.txt", follow_symlinks=True)),
        "through name": read_text(f"{home}/secret.txt"),
        "write by name": outcome(write_through, f"{home}/secret.txt"),
    }


class OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def above_the_root():
    above = ["/workspace/..", "/workspace/../..", "/workspace/work/../../../../..", "/proc/self/cwd/.."]
    root = os.stat("/")
    os.chdir("/workspace")
    here = os.open("/workspace", os.O_PATH | os.O_DIRECTORY)
    resolve = {"NO_XDEV": 1, "BENEATH": 8, "IN_ROOT": 16}

    def reach(path, how):
        descriptor = call("openat2", here, path, ctypes.byref(OpenHow(os.O_PATH, 0, resolve[how])), 24)
        found = os.fstat(descriptor)
        os.close(descriptor)
        return "the workspace" if os.path.samestat(found, os.stat("/workspace")) else "elsewhere"

    def place(path, how):
        try:
            return reach(path, how)
        except OSError:
            return outcome(reach, path, how)

    return {
        "is root": {path: os.path.samestat(os.stat(path), root) for path in above},
        "same names": sorted(os.listdir("/workspace/..")) == sorted(os.listdir("/")),
        "openat2": {f"{path.decode()} {how}": place(path, how) for path in (b"..", b"../..", b"work/../..") for how in resolve},
        "held": outcome(lambda: os.close(os.open("../../etc/shadow-", os.O_RDONLY, dir_fd=here))),
    }


ATTACKS = {
    "ESC-01": codebase_links,
    "ESC-02": attributes_of_links,
    "ESC-03": link_named_like_directory,
    "ESC-04": stale_directory,
    "ESC-05": stale_file,
    "ESC-06": swap_race,
    "ESC-07": copy_up_below_link,
    "ESC-14": above_the_root,
}
