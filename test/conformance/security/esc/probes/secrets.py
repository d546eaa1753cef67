"""ESC-25, ESC-26, ESC-47, ESC-49: what the box tells about the host."""

import os

from .calls import process_ids, read_text

PER_PROCESS = "cmdline environ maps mountinfo mounts mountstats cgroup status stat limits comm"


def all_processes(name):
    return {str(pid): read_text(f"/proc/{pid}/{name}") for pid in process_ids()}


def command_lines():
    return all_processes("cmdline")


def environments():
    own = [entry for entry in read_text("/proc/self/environ").split("\0") if entry]
    return {"own": dict(entry.split("=", 1) for entry in own), "all": all_processes("environ")}


def everything_of_proc():
    """Everything /proc says about the processes, for the test to search."""
    return {name: all_processes(name) for name in PER_PROCESS.split()}


def planted_secrets(paths):
    """Files that the host keeps where boxes must not look."""
    listings = {}
    for place in ("/etc", "/root", "/run", "/home", "/var", "/var/tmp", "/var/lib", "/srv", "/mnt", "/boot"):
        listings[place] = sorted(os.listdir(place)) if os.access(place, os.R_OK) and os.path.isdir(place) else []
    secret = """/etc/shadow /etc/gshadow /etc/ssh/ssh_host_rsa_key /etc/machine-id
        /root/.ssh/id_rsa /root/.bash_history /root/.netrc"""
    return {
        "planted": {path: read_text(path) for path in paths},
        "listings": listings,
        "secrets": {path: read_text(path) for path in secret.split()},
        "passwd": read_text("/etc/passwd"),
    }


ATTACKS = {
    "ESC-25": command_lines,
    "ESC-26": environments,
    "ESC-47": planted_secrets,
    "ESC-49": everything_of_proc,
}
