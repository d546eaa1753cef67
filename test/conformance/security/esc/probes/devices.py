"""ESC-39 and ESC-40: devices and control sockets."""

import os
import socket
import stat

from .calls import open_for, outcome

WANTED = """mem kmem port kmsg kvm tun net/tun fuse cuse loop0 loop-control vsock vhost-vsock vhost-net vhci uinput uhid
    sda vda nvme0n1 dm-0 mapper/control btrfs-control rfkill userfaultfd snapshot hpet cpu/0/msr nvram watchdog autofs
    vfio/vfio dri/card0 input/event0 snd/timer bus/usb/001/001 rtc0 ttyS0 tty0 tty1 console hwrng ppp udmabuf"""


def device_nodes():
    nodes = {}
    for directory, names, files in os.walk("/dev"):
        for name in names + files:
            path = f"{directory}/{name}"
            found = os.lstat(path)
            if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
                kind = "c" if stat.S_ISCHR(found.st_mode) else "b"
                nodes[path] = f"{kind} {os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    return {
        "nodes": nodes,
        "wanted": {name: outcome(open_for, f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK) for name in WANTED.split()},
        "elsewhere": [
            f"{directory}/{name}"
            for place in ("/tmp", "/run", "/etc", "/var", "/home", "/workspace")
            for directory, _, files in os.walk(place)
            for name in files
            if is_device(f"{directory}/{name}")
        ],
    }


def is_device(path):
    mode = os.lstat(path).st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


CONTROL_SOCKETS = """/var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock
    /run/crio/crio.sock /run/dbus/system_bus_socket /run/systemd/private /run/systemd/notify /run/systemd/journal/stdout /run/udev/control
    /run/user/0/bus /run/snapd.socket /var/run/libvirt/libvirt-sock /dev/log /tmp/.X11-unix/X0"""


def control_sockets(paths):
    facts = {}
    for path in [*CONTROL_SOCKETS.split(), *paths]:
        facts[path] = outcome(socket.socket(socket.AF_UNIX).connect, path)
    sockets = [
        f"{directory}/{name}"
        for place in ("/run", "/var", "/tmp", "/dev", "/home")
        for directory, _, files in os.walk(place)
        for name in files
        if stat.S_ISSOCK(os.lstat(f"{directory}/{name}").st_mode)
    ]
    return {"connected": facts, "sockets": sockets}


ATTACKS = {"ESC-39": device_nodes, "ESC-40": control_sockets}
