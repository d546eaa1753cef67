"""One timed piece of file system work, done in a process of its own.

    python3 client.py '{"task": "stat", ...}'

prints one line of JSON: {"seconds": how long the work itself took, "check": a value that tells whether it was right}.
The clock covers neither the start of the interpreter nor making the list of names nor counting what came out, so
the client costs the same on every file system and little on any.
"""

import gc
import json
import os
import random
import subprocess
import sys
import time

clock = time.perf_counter


def command(argv, cwd, count=None):
    """A standard tool. The check is the number of lines it prints, or of the files below `count` afterwards."""
    start = clock()
    done = subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True)
    seconds = clock() - start
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} exited with {done.returncode}: {done.stderr.decode(errors='replace').strip()[:300]}")
    if count is None:
        return seconds, done.stdout.count(b"\n")
    return seconds, sum(len(files) for _, _, files in os.walk(count))


def stat(paths):
    names = expand(paths)
    start = clock()
    total = 0
    for name in names:
        total += os.stat(name).st_size
    return clock() - start, total


def open_read(paths):
    names = expand(paths)
    start = clock()
    total = 0
    for name in names:
        fd = os.open(name, os.O_RDONLY)
        total += len(os.read(fd, 8192))
        os.close(fd)
    return clock() - start, total


def create(directory, count):
    names = flat_names(directory, count)
    body = b"x" * 100
    start = clock()
    for name in names:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(fd, body)
        os.close(fd)
    return clock() - start, entries(directory)


def rename(directory):
    names = existing(directory)
    start = clock()
    for name in names:
        os.rename(name, name + ".new")
    return clock() - start, sum(name.endswith(".new") for name in existing(directory))


def delete(directory):
    names = existing(directory)
    start = clock()
    for name in names:
        os.unlink(name)
    return clock() - start, len(names) - entries(directory)


def read(file):
    buffer = bytearray(b"x" * (1 << 20))
    start = clock()
    total = 0
    with open(file, "rb", buffering=0) as source:
        while n := source.readinto(buffer):
            total += n
    return clock() - start, total


def random_read(file, span, count):
    rng = random.Random(4096)
    offsets = [rng.randrange(span // 4096) * 4096 for _ in range(count)]
    buffers = [bytearray(b"x" * 4096)]
    fd = os.open(file, os.O_RDONLY)
    start = clock()
    total = 0
    for offset in offsets:
        total += os.preadv(fd, buffers, offset)
    return clock() - start, total


def write(file, block, count):
    # A buffer whose pages were never touched makes the kernel cut one write into many small ones.
    body = b"x" * block
    start = clock()
    total = 0
    with open(file, "xb", buffering=0) as out:
        for _ in range(count):
            total += out.write(body)
    return clock() - start, total


def expand(paths):
    """{"directories": [...], "files": n, "name": "file%02d.txt"}: n names in each directory."""
    return [f"{d}/{paths['name'] % i}" for d in paths["directories"] for i in range(paths["files"])]


def flat_names(directory, count, per_directory=500):
    for d in range(-(-count // per_directory)):
        os.makedirs(f"{directory}/d{d}")
    return [f"{directory}/d{i // per_directory}/f{i:05d}" for i in range(count)]


def existing(directory):
    return sorted(entry.path for d in os.scandir(directory) for entry in os.scandir(d.path))


def entries(directory):
    return sum(len(os.listdir(d.path)) for d in os.scandir(directory))


TASKS = {f.__name__: f for f in (command, stat, open_read, create, rename, delete, read, random_read, write)}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    gc.disable()
    seconds, check = TASKS[request.pop("task")](**request)
    print(json.dumps({"seconds": seconds, "check": check}))
