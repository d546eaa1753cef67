import { fchownSync } from "node:fs";
import { Socket } from "node:net";
import { Errno, processes, syscalls } from "@agentfense/fuse";
import { IsolationError } from "../backend/isolation-error.ts";

/** What an `ulimit` or a full table of the host answers, as the caller may see it. */
export function exhausted(operation: string, code: number): IsolationError {
  const isLimit = code === -Errno.EMFILE || code === -Errno.ENFILE || code === -Errno.ENOMEM || code === -Errno.ENOSPC;
  return new IsolationError(
    isLimit ? "RESOURCES_EXHAUSTED" : "INTERNAL",
    isLimit ? "the host has no descriptors or memory left for this command" : "the host refused what the command needs",
    { cause: new Error(`${operation} failed with errno ${-code}`) },
  );
}

/** The descriptors that somebody is given; whatever is still here at the end is closed. */
export class DescriptorSet implements Disposable {
  readonly #open = new Set<number>();

  add(fd: number): number {
    this.#open.add(fd);
    return fd;
  }

  /** With an owner who may open it anew by its name in /proc: `echo > /dev/stderr`. */
  pipe(owner?: { readonly uid: number; readonly gid: number }): processes.Pipe {
    const pipe = processes.pipe();
    if (typeof pipe === "number") throw exhausted("pipe", pipe);
    this.#open.add(pipe.readEnd).add(pipe.writeEnd);
    if (owner !== undefined) fchownSync(pipe.readEnd, owner.uid, owner.gid);
    return pipe;
  }

  /** Both ends of sockets that were just made, if they were. */
  pair(sockets: readonly [number, number] | number): readonly [ours: number, theirs: number] {
    if (typeof sockets === "number") throw exhausted("socketpair", sockets);
    this.#open.add(sockets[0]).add(sockets[1]);
    return sockets;
  }

  /** The same file, read from its start by itself. */
  reopen(fd: number): number {
    const fresh = syscalls.open(`/proc/self/fd/${fd}`, syscalls.Open.RDONLY | syscalls.Open.CLOEXEC);
    if (fresh < 0) throw exhausted("open", fresh);
    return this.add(fresh);
  }

  /** Hands a descriptor over to somebody who closes it. */
  release(fd: number): number {
    this.#open.delete(fd);
    return fd;
  }

  close(fd: number): void {
    if (this.#open.delete(fd)) syscalls.close(fd);
  }

  [Symbol.dispose](): void {
    for (const fd of this.#open) syscalls.close(fd);
    this.#open.clear();
  }
}

/** Content that is read from its start, whether the descriptor is handed over or opened anew. */
export function memoryFile(name: string, content: Uint8Array): number {
  const fd = processes.anonymousFile(name);
  if (fd < 0) throw exhausted("memfd_create", fd);
  for (let done = 0; done < content.length; ) {
    const written = syscalls.pwrite(fd, content.subarray(done), content.length - done, done);
    if (written <= 0) {
      syscalls.close(fd);
      throw exhausted("write", written);
    }
    done += written;
  }
  return fd;
}

/** A pipe's end as a stream: who does not read it stops the writer, and the other way round. */
export function readFrom(fd: number): Socket {
  return quiet(new Socket({ fd, readable: true, writable: false }));
}

/** Writing to a command that no longer reads is no error of ours: the rest is dropped. */
export function writeTo(fd: number): Socket {
  return quiet(new Socket({ fd, readable: false, writable: true }));
}

// A command that nobody waits for does not keep the process alive; see IsolationOptions.holdsProcess.
function quiet(socket: Socket): Socket {
  socket.on("error", () => {});
  return socket.unref();
}
