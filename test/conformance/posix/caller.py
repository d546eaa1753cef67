"""Makes system calls for a test, in a process of its own.

Each line on stdin is `[name, argument, ...]`; the answer is one line, `{"ok": value}` or `{"errno": "ENOENT"}`.
Path names and link targets travel as strings in which a byte that is not UTF-8 is a lone surrogate (U+DC80..U+DCFF);
file content travels as latin-1. Times are nanoseconds in decimal, since they do not fit a double.
"""

import ctypes
import errno
import fcntl
import hashlib
import itertools
import json
import mmap
import os
import socket
import stat
import struct
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD = -100
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
SYS_GETDENTS64 = 217 if os.uname().machine == "x86_64" else 61
TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}
ENTRY_TYPES = {1: "fifo", 4: "directory", 8: "file", 10: "symlink", 12: "socket"}
SYS_OPENAT2 = 437
RESOLVE = {"NO_XDEV": 1, "NO_MAGICLINKS": 2, "NO_SYMLINKS": 4, "BENEATH": 8, "IN_ROOT": 16, "CACHED": 32}
IN_ALL_EVENTS = 0xFFF
RENAME = {"NOREPLACE": 1, "EXCHANGE": 2, "WHITEOUT": 4}
FALLOCATE = {"KEEP_SIZE": 1, "PUNCH_HOLE": 2, "COLLAPSE_RANGE": 8, "ZERO_RANGE": 16}
# Python's table has one name per number, and for this one the name nobody uses.
ERRNO_NAMES = {**errno.errorcode, errno.EOPNOTSUPP: "EOPNOTSUPP"}
maps = {}
map_numbers = itertools.count()
sockets = {}
# The descriptor that all watches of this process are on, once there is one.
watches = []


def checked(result):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def mask(names, table):
    """'O_RDWR|O_CREAT' as a number."""
    return sum(table(name) for name in names.split("|") if name)


def flag(name):
    return os.O_TMPFILE if name == "O_TMPFILE" else getattr(os, name)


def attributes(st):
    return {
        "type": TYPES.get(stat.S_IFMT(st.st_mode), "device"),
        "mode": stat.S_IMODE(st.st_mode),
        "size": st.st_size,
        "nlink": st.st_nlink,
        "uid": st.st_uid,
        "gid": st.st_gid,
        "ino": st.st_ino,
        "dev": st.st_dev,
        "blocks": st.st_blocks,
        "atime": str(st.st_atime_ns),
        "mtime": str(st.st_mtime_ns),
        "ctime": str(st.st_ctime_ns),
    }


def rename2(source, target, flags):
    checked(libc.renameat2(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), mask(flags, RENAME.__getitem__)))


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64)]


def timespec(value):
    if value == "now":
        return Timespec(0, UTIME_NOW)
    if value == "omit":
        return Timespec(0, UTIME_OMIT)
    return Timespec(*divmod(int(value), 1_000_000_000))


def utimens(path, atime, mtime, follow=True):
    pair = (Timespec * 2)(timespec(atime), timespec(mtime))
    checked(libc.utimensat(AT_FDCWD, os.fsencode(path), pair, 0 if follow else 0x100))


def fallocate(fd, mode, offset, length):
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    checked(libc.fallocate(fd, mask(mode, FALLOCATE.__getitem__), offset, length))


def getdents(fd, size):
    """One getdents64 call, decoded; an empty list is the end of the directory."""
    buffer = ctypes.create_string_buffer(size)
    filled = checked(libc.syscall(SYS_GETDENTS64, fd, buffer, size))
    entries, at = [], 0
    while at < filled:
        ino, off, length, kind = struct.unpack_from("<QqHB", buffer.raw, at)
        name = buffer.raw[at + 19 : at + length].split(b"\0", 1)[0]
        entries.append({"ino": ino, "offset": str(off), "type": ENTRY_TYPES.get(kind, "device"), "name": os.fsdecode(name)})
        at += length
    return entries


def list_entries(path, size):
    """The whole listing, read piece by piece with a buffer of this size."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        entries = []
        while piece := getdents(fd, size):
            entries += piece
        return entries
    finally:
        os.close(fd)


def resolve(directory, path, flags, how, mode=0):
    """openat2 relative to a directory; what it opens is closed at once. EAGAIN is its answer also when somebody on this
    machine mounted or renamed anything meanwhile: only where it stays is it about the path."""
    given = struct.pack("<QQQ", mask(flags, flag), mode, mask(how, RESOLVE.__getitem__))
    base = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        for left in reversed(range(20)):
            try:
                os.close(checked(libc.syscall(SYS_OPENAT2, base, os.fsencode(path), given, len(given))))
                return
            except BlockingIOError:
                if left == 0:
                    raise
    finally:
        os.close(base)


def handle(path, flags):
    """What name_to_handle_at gives for a path: the type and the bytes of the handle."""
    held = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0), 8 + 128)
    mount_id = ctypes.c_uint64()
    checked(libc.name_to_handle_at(AT_FDCWD, os.fsencode(path), held, ctypes.byref(mount_id), flags))
    size, kind = struct.unpack_from("<Ii", held.raw)
    return {"type": kind, "bytes": held.raw[8 : 8 + size].hex()}


def watch(path):
    if not watches:
        watches.append(checked(libc.inotify_init1(os.O_NONBLOCK)))
    return checked(libc.inotify_add_watch(watches[0], os.fsencode(path), IN_ALL_EVENTS))


def events():
    """The events that wait on the watches of this process. The two halves of a rename are told by 'moved'."""
    found = []
    while watches:
        try:
            data = os.read(watches[0], 65536)
        except BlockingIOError:
            break
        at = 0
        while at < len(data):
            number, kind, cookie, length = struct.unpack_from("<iIII", data, at)
            name = os.fsdecode(data[at + 16 : at + 16 + length].rstrip(b"\0"))
            found.append({"watch": number, "mask": kind, "moved": cookie != 0, "name": name})
            at += 16 + length
    return found


def close_all():
    """Closes every descriptor but those this process talks through, the watches included."""
    os.closerange(3, 1024)
    watches.clear()


def link(source, target, follow=False):
    # os.link cannot ask for AT_SYMLINK_FOLLOW.
    checked(libc.linkat(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(target), 0x400 if follow else 0))


def link_descriptor(fd, target):
    checked(libc.linkat(fd, b"", AT_FDCWD, os.fsencode(target), 0x1000))


def map_file(fd, length, access="rw"):
    prot = mmap.PROT_READ | (mmap.PROT_WRITE if "w" in access else 0)
    kind = mmap.MAP_PRIVATE if "p" in access else mmap.MAP_SHARED
    number = next(map_numbers)
    maps[number] = mmap.mmap(fd, length, flags=kind, prot=prot)
    return number


def map_write(number, offset, data):
    maps[number][offset : offset + len(data)] = data.encode("latin-1")


def bind_socket(path, listen=True):
    held = socket.socket(socket.AF_UNIX)
    try:
        held.bind(os.fsencode(path))
    except OSError:
        held.close()
        raise
    if listen:
        held.listen(1)
    sockets[path] = held


def converse(path, text):
    """Sends text to the listening socket at path, which this same process holds, and says what arrived there."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.fsencode(path))
        served, _ = sockets[path].accept()
        with served:
            client.sendall(text.encode())
            return served.recv(65536).decode()


def run(arguments, stdin=None):
    # Bytes, not text: a codec loaded on demand may be out of reach for the user this process has become.
    given = None if stdin is None else stdin.encode("latin-1")
    done = subprocess.run(arguments, input=given, capture_output=True, check=False)
    return {"code": done.returncode, "stdout": done.stdout.decode("latin-1"), "stderr": done.stderr.decode("latin-1")}


def lock(fd, kind, start=0, length=0):
    """A POSIX record lock without waiting."""
    kinds = {"read": fcntl.LOCK_SH | fcntl.LOCK_NB, "write": fcntl.LOCK_EX | fcntl.LOCK_NB, "none": fcntl.LOCK_UN}
    fcntl.lockf(fd, kinds[kind], length, start)


def flock(fd, kind):
    fcntl.flock(fd, {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX, "none": fcntl.LOCK_UN}[kind] | fcntl.LOCK_NB)


def statfs(path):
    found = os.statvfs(path)
    return {
        "blockSize": found.f_frsize,
        "blocks": found.f_blocks,
        "available": found.f_bavail,
        "files": found.f_files,
        "freeFiles": found.f_ffree,
        "nameMax": found.f_namemax,
    }


def become(uid, gid, groups):
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def user_xattrs(path):
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return {name: os.getxattr(path, name, follow_symlinks=False).decode("latin-1") for name in sorted(names) if name.startswith("user.")}
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS):
            return {}
        raise


def content_hash(path):
    """A file nobody may read is part of a listing too: its content is the errno."""
    try:
        digest = hashlib.sha1()
        with open(path, "rb", buffering=0) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()
    except OSError as error:
        return ERRNO_NAMES[error.errno]


def listed(path, at, pending, recent_from):
    st = os.lstat(path)
    entry = attributes(st)
    for name in ("ino", "dev", "blocks", "atime", "ctime"):
        del entry[name]
    # What goes through a FIFO moves its times on some file systems; nobody is promised either.
    if recent_from is None or st.st_mtime_ns >= int(recent_from) or entry["type"] == "fifo":
        entry["mtime"] = "recent"
    if entry["type"] == "directory":
        del entry["size"], entry["nlink"]
        names = sorted(os.listdir(path))
        if len(set(names)) != len(names):
            entry["duplicates"] = sorted(names)
        pending.extend(os.path.join(at, name) for name in names)
    elif entry["type"] == "symlink":
        entry["target"] = os.readlink(path)
    elif entry["type"] == "file":
        entry["sha1"] = content_hash(path)
    if entry["type"] in ("file", "directory"):
        entry["xattrs"] = user_xattrs(path)
    return entry


def listing(root, recent_from=None):
    """Every entry below root by its path; one that cannot be looked at has an errno only. Times before `recent_from`
    are exact, later ones are all 'recent': two runs of one workload touch their files at different moments, but must
    touch the same ones."""
    found = {}
    pending = [""]
    while pending:
        at = pending.pop()
        path = os.path.join(root, at) if at else root
        try:
            found[at or "."] = listed(path, at, pending, recent_from)
        except OSError as error:
            found[at or "."] = {"errno": ERRNO_NAMES[error.errno]}
    return dict(sorted(found.items()))


def numbers(root):
    """What the numbers of every entry below root are: those of the listing and those of stat."""
    found = {}
    pending = [""]
    while pending:
        at = pending.pop()
        try:
            for entry in sorted(list_entries(os.path.join(root, at), 32768), key=lambda entry: entry["name"]):
                path = os.path.join(at, entry["name"])
                if entry["name"] in (".", ".."):
                    continue
                st = os.lstat(os.path.join(root, path))
                found[path] = {"ino": st.st_ino, "listed": entry["ino"], "nlink": st.st_nlink, "blocks": st.st_blocks, "mtime": str(st.st_mtime_ns)}
                if stat.S_ISDIR(st.st_mode):
                    pending.append(path)
        except OSError as error:
            found[at] = {"errno": ERRNO_NAMES[error.errno]}
    return dict(sorted(found.items()))


CALLS = {
    "open": lambda path, flags, mode=0o666: os.open(path, mask(flags, flag), mode),
    "close": os.close,
    "closeAll": close_all,
    "read": lambda fd, count: os.read(fd, count).decode("latin-1"),
    "pread": lambda fd, count, offset: os.pread(fd, count, offset).decode("latin-1"),
    "write": lambda fd, data: os.write(fd, data.encode("latin-1")),
    "pwrite": lambda fd, data, offset: os.pwrite(fd, data.encode("latin-1"), offset),
    "lseek": lambda fd, offset, whence: os.lseek(fd, int(offset), getattr(os, whence)),
    "truncate": os.truncate,
    "ftruncate": os.ftruncate,
    "fsync": os.fsync,
    "stat": lambda path: attributes(os.stat(path)),
    "lstat": lambda path: attributes(os.lstat(path)),
    "fstat": lambda fd: attributes(os.fstat(fd)),
    "statfs": statfs,
    "mkdir": os.mkdir,
    "rmdir": os.rmdir,
    "unlink": os.unlink,
    "rename": os.rename,
    "rename2": rename2,
    "link": link,
    "linkDescriptor": link_descriptor,
    "symlink": os.symlink,
    "readlink": os.readlink,
    "mknod": lambda path, mode, major, minor: os.mknod(path, mode, os.makedev(major, minor)),
    "mkfifo": os.mkfifo,
    "chmod": os.chmod,
    "fchmod": os.fchmod,
    "chown": os.chown,
    "lchown": os.lchown,
    "utimens": utimens,
    "setxattr": lambda path, name, value: os.setxattr(path, name, value.encode("latin-1")),
    "getxattr": lambda path, name: os.getxattr(path, name).decode("latin-1"),
    "listxattr": lambda path: sorted(os.listxattr(path)),
    "removexattr": os.removexattr,
    "listdir": lambda path: sorted(os.listdir(path)),
    "getdents": getdents,
    "listEntries": list_entries,
    "resolve": resolve,
    "handle": handle,
    "watch": watch,
    "events": events,
    "numbers": numbers,
    # access(2) asks for the real ids; the callers here have equal real and effective ids.
    "access": lambda path, mode: checked(libc.access(os.fsencode(path), mode)),
    "fallocate": fallocate,
    "copyFileRange": lambda source, target, count, from_, to: os.copy_file_range(source, target, count, from_, to),
    "lock": lock,
    "flock": flock,
    "map": map_file,
    "mapRead": lambda number, offset, count: maps[number][offset : offset + count].decode("latin-1"),
    "mapWrite": map_write,
    "mapFlush": lambda number: maps[number].flush(),
    "unmap": lambda number: maps.pop(number).close(),
    "bindSocket": bind_socket,
    "converse": converse,
    "closeSocket": lambda path: sockets.pop(path).close(),
    "chdir": os.chdir,
    "getcwd": os.getcwd,
    "umask": os.umask,
    "run": run,
    "become": become,
    "listing": listing,
    "realpath": os.path.realpath,
}


def main():
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"ok": CALLS[name](*arguments)}
        except OSError as error:
            answer = {"errno": ERRNO_NAMES.get(error.errno, str(error.errno))}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
