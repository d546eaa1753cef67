import type { ConnectionInfo, FileSystem } from "./file-system.ts";
import { FuseSession, MessageBuffers } from "./fuse-session.ts";
import { ServeLoop } from "./loop.ts";
import { type FuseDevice, mountFuse, unmountFuse } from "./mount.ts";
import * as sys from "./native/syscalls.ts";

export interface ServeOptions {
  readonly mountPoint: string;
  readonly fileSystem: FileSystem;
  /** Shown as the source and, behind "fuse.", as the type of the mount; default "fuse". */
  readonly name?: string;
  /** Let processes of other users in; default false, since nobody but the file system checks permissions. */
  readonly allowOther?: boolean;
  readonly passthrough?: boolean;
  /**
   * Ends serving. While the thread serves no event reaches it, so from then on only the file system's own code can abort.
   */
  readonly signal?: AbortSignal;
  readonly log?: (message: string) => void;
  /** The mount works. Called on the serving thread, which must not touch the mount: tell another one. */
  readonly onReady?: (mount: ServedMount) => void;
}

export interface ServedMount {
  readonly connection: ConnectionInfo;
  readonly privileged: boolean;
  /** `ring(doorbell)` from another thread of this process ends serving, even with files still open. */
  readonly doorbell: number;
}

/**
 * Mounts a file system and serves it. Once mounted this BLOCKS the calling thread (no timers, no promises, no signal
 * handlers run on it) until the mount is gone, so call it in a Worker or in a process of its own. Ends when the mount is
 * unmounted and its last file closed, and unmounts by itself when told to stop before that.
 */
export async function serveFuse(options: ServeOptions): Promise<void> {
  options.signal?.throwIfAborted();
  const device = await mountFuse({
    mountPoint: options.mountPoint,
    name: options.name ?? "fuse",
    allowOther: options.allowOther ?? false,
  });
  let gone = false;
  try {
    gone = serve(device, options);
  } finally {
    // Closing first ends the connection: whoever still waits for an answer gets an error, and no one can block us.
    sys.close(device.fd);
    if (!gone) {
      options.fileSystem.destroy?.();
      await unmountFuse(options.mountPoint, { privileged: device.privileged });
    }
  }
}

/** Returns whether the mount is gone; false when serving was ended first. */
function serve(device: FuseDevice, { fileSystem, passthrough, signal, log, onReady }: ServeOptions): boolean {
  let gone = false;
  const loop = new ServeLoop({
    onDoorbell: () => loop.stop(),
    onClosed: () => {
      gone = true;
      loop.stop();
    },
  });
  const stop = () => loop.stop();
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  try {
    loop.add(
      new FuseSession({
        fd: device.fd,
        fileSystem,
        buffers: new MessageBuffers(),
        ...(passthrough === undefined ? {} : { passthrough }),
        ...(log === undefined ? {} : { log }),
        onReady: (connection) => onReady?.({ connection, privileged: device.privileged, doorbell: loop.doorbell }),
      }),
    );
    loop.run();
    return gone;
  } finally {
    signal?.removeEventListener("abort", stop);
    loop.close();
  }
}
