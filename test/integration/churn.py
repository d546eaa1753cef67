"""Random work in a directory that other processes work in at the same time.

Called with the directory, a seed, a number of steps, and the ids of the user to work as. Names are few, so that the processes meet. What another one
did a moment ago explains the errors below; any other error is printed and ends the work.
"""

import errno
import os
import random
import sys

EXPECTED = {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR, errno.EXDEV, errno.EINVAL, errno.ELOOP, errno.EPERM, errno.ENODATA}
NAMES = ["a", "b", "c", "d", "e"]


def path(choose):
    return "/".join(choose.choice(NAMES) for _ in range(choose.randint(1, 3)))


def write(choose):
    fd = os.open(path(choose), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o644)
    try:
        os.pwrite(fd, b"x" * choose.randint(0, 5000), choose.choice([0, 10, 5000]))
        os.fstat(fd)
    finally:
        os.close(fd)


def append(choose):
    fd = os.open(path(choose), os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
    try:
        os.write(fd, b"line\n")
    finally:
        os.close(fd)


def read(choose):
    fd = os.open(path(choose), os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.read(fd, 10_000)
    finally:
        os.close(fd)


WORK = [
    (write, 8),
    (append, 5),
    (read, 5),
    (lambda choose: os.mkdir(path(choose)), 8),
    (lambda choose: os.rmdir(path(choose)), 4),
    (lambda choose: os.unlink(path(choose)), 6),
    (lambda choose: os.rename(path(choose), path(choose)), 10),
    (lambda choose: os.link(path(choose), path(choose)), 6),
    (lambda choose: os.symlink(choose.choice(NAMES), path(choose)), 3),
    (lambda choose: os.listdir(path(choose)), 6),
    (lambda choose: os.lstat(path(choose)), 8),
    (lambda choose: os.chmod(path(choose), choose.choice([0o700, 0o711, 0o755])), 3),
    (lambda choose: os.truncate(path(choose), choose.randint(0, 100)), 3),
    (lambda choose: os.setxattr(path(choose), "user.mark", b"1"), 2),
]


def main(seed, steps):
    choose = random.Random(seed)
    actions, weights = zip(*WORK)
    for step in range(steps):
        (action,) = choose.choices(actions, weights)
        try:
            action(choose)
        except OSError as error:
            if error.errno not in EXPECTED:
                sys.exit(f"step {step} of seed {seed}: {error}")


directory, *numbers = sys.argv[1:]
seed, steps, uid, gid = map(int, numbers)
os.setgroups([])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
os.chdir(directory)
main(seed, steps)
