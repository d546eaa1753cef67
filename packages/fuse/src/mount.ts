import { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { check, Errno, SystemError } from "./errno.ts";
import * as processes from "./native/processes.ts";
import * as sys from "./native/syscalls.ts";

export interface MountOptions {
  readonly mountPoint: string;
  /** Shown as the source and, behind "fuse.", as the type of the mount. */
  readonly name: string;
  /** Let processes of other users in. An ordinary user may only with `user_allow_other` in /etc/fuse.conf. */
  readonly allowOther?: boolean;
  /** Have the kernel check the mode bits too, as it does for a file system of its own. */
  readonly checkModes?: boolean;
  /** Mount with mount(2) instead of fusermount3; default: when the process is root. */
  readonly privileged?: boolean;
}

export interface FuseDevice {
  /** The descriptor of /dev/fuse that carries the connection; non-blocking. */
  readonly fd: number;
  readonly privileged: boolean;
}

const DEVICE = "/dev/fuse";

// It stands in an option list, where a comma would begin another option.
const PLAIN_NAME = /^[A-Za-z0-9._-]+$/;

/** Mounts and returns the connection's descriptor; requests can be read from it at once. */
export async function mountFuse(options: MountOptions): Promise<FuseDevice> {
  if (!PLAIN_NAME.test(options.name)) throw new TypeError(`not a name for a mount: ${options.name}`);
  const privileged = options.privileged ?? process.geteuid?.() === 0;
  const fd = privileged ? mountDirectly(options) : await mountWithHelper(options);
  check("fcntl", sys.setNonblocking(fd));
  return { fd, privileged };
}

/** Detaches the mount: new accesses see the directory beneath, running ones end with the connection. */
export async function unmountFuse(mountPoint: string, options: { privileged: boolean }): Promise<void> {
  if (options.privileged) {
    const code = sys.umount(bytesOf(mountPoint), sys.Mount.DETACH);
    // Not mounted (any more) is what was wanted.
    if (code < 0 && -code !== Errno.EINVAL && -code !== Errno.ENOENT) throw new SystemError("umount2", -code);
    return;
  }
  const { code, stderr } = await runHelper(detaching(mountPoint));
  if (code !== 0 && !/not found|not mounted|Invalid argument/i.test(stderr)) {
    throw new Error(`fusermount3 -u failed: ${stderr.trim() || `exit code ${code}`}`);
  }
}

/** unmountFuse for a process that is about to exit and has no time to wait; what goes wrong is left to the next start. */
export function unmountNow(mountPoint: string, options: { privileged: boolean }): void {
  if (options.privileged) sys.umount(bytesOf(mountPoint), sys.Mount.DETACH);
  else {
    const pid = processes.spawn(["fusermount3", ...detaching(mountPoint)], environment(), []);
    if (pid > 0) processes.waitUntilEnded(pid);
  }
}

// Paths of the host come as JavaScript strings; system calls take byte strings.
function bytesOf(path: string): string {
  return Buffer.from(path, "utf8").toString("latin1");
}

function mountDirectly(options: MountOptions): number {
  const fd = check(`open ${DEVICE}`, sys.open(DEVICE, sys.Open.RDWR));
  const data = [`fd=${fd}`, "rootmode=40000", "user_id=0", "group_id=0"];
  if (options.allowOther ?? true) data.push("allow_other");
  if (options.checkModes) data.push("default_permissions");
  const flags = sys.Mount.NOSUID | sys.Mount.NODEV;
  const code = sys.mount(options.name, bytesOf(options.mountPoint), `fuse.${options.name}`, flags, data.join(","));
  if (code < 0) {
    sys.close(fd);
    throw new SystemError("mount", -code);
  }
  // What the host mounts below it later is not for those who have a copy of this mount in a namespace of their own.
  const separated = sys.mount("none", bytesOf(options.mountPoint), "", sys.Mount.PRIVATE, "");
  if (separated < 0) {
    sys.umount(bytesOf(options.mountPoint), sys.Mount.DETACH);
    sys.close(fd);
    throw new SystemError("mount --make-private", -separated);
  }
  return fd;
}

// fusermount3 is setuid root: it opens /dev/fuse, mounts, and sends the descriptor over the socket it is told of.
async function mountWithHelper(options: MountOptions): Promise<number> {
  const pair = sys.socketpair();
  if (typeof pair === "number") throw new SystemError("socketpair", -pair);
  const [ours, theirs] = pair;
  try {
    const mountOptions = [`fsname=${options.name}`, `subtype=${options.name}`, "nosuid", "nodev"];
    if (options.allowOther) mountOptions.push("allow_other");
    if (options.checkModes) mountOptions.push("default_permissions");
    const { code, stderr } = await runHelper(["-o", mountOptions.join(","), "--", options.mountPoint], theirs);
    if (code !== 0) throw new Error(`fusermount3 failed: ${stderr.trim() || `exit code ${code}`}`);
    return check("fusermount3 sent no descriptor", sys.receiveDescriptor(ours));
  } finally {
    sys.close(ours);
    sys.close(theirs);
  }
}

function detaching(mountPoint: string): string[] {
  return ["-u", "-z", "--", mountPoint];
}

function environment(...more: string[]): string[] {
  return [`PATH=${process.env.PATH ?? ""}`, ...more];
}

async function runHelper(args: string[], socket?: number): Promise<{ code: number | null; stderr: string }> {
  const voice = processes.pipe();
  if (typeof voice === "number") throw new SystemError("pipe", -voice);
  const says = voice.writeEnd; // it reads nothing, and whatever it says belongs together
  const pid = processes.spawn(
    ["fusermount3", ...args],
    environment(...(socket === undefined ? [] : ["_FUSE_COMMFD=3"])),
    [says, says, says, ...(socket === undefined ? [] : [socket])],
  );
  sys.close(says);
  const hears = new Socket({ fd: voice.readEnd, readable: true, writable: false });
  if (pid < 0) {
    hears.destroy();
    const missing = pid === -Errno.ENOENT;
    throw missing
      ? new Error("fusermount3 is not installed: install the package fuse3")
      : new SystemError("spawn", -pid);
  }
  const stderr = await text(hears); // only then is it waited for, which takes a thread until it has ended
  return { code: await processes.ended(pid), stderr };
}
