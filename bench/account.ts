import { accessSync, chmodSync, constants, statSync } from "node:fs";
import { type Identity, run } from "./client.ts";

const NAME = "agentfense-bench";
const UNPINNED = { pinned: false } as const;

/** The ordinary user that the benchmark mounts as; an account made for the purpose goes when it is disposed of. */
export interface Account extends AsyncDisposable {
  readonly identity: Identity;
}

/** Finds or makes the account and sees to it that it can mount. Needs root; says what it changes. */
export async function ordinaryUser(say: (line: string) => void): Promise<Account> {
  const found = await lookUp();
  if (found === undefined) {
    await run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", NAME], UNPINNED);
    say(`made the account ${NAME}; it is removed at the end`);
  }
  if ((statSync("/dev/fuse").mode & 0o006) !== 0o006) {
    // What udev does on an ordinary machine; without it nobody but root can mount.
    chmodSync("/dev/fuse", 0o666);
    say("set the mode of /dev/fuse to 0666, so that an ordinary user can mount");
  }
  const identity = found ?? (await lookUp());
  if (identity === undefined) throw new Error(`the account ${NAME} could not be made`);
  return {
    identity,
    async [Symbol.asyncDispose]() {
      if (found === undefined) await run(["userdel", NAME], UNPINNED);
    },
  };
}

/** Whether that user can start this Node at all: a home directory closed to others would prevent it. */
export async function canRunNode(identity: Identity): Promise<boolean> {
  return run([process.execPath, "-e", "0"], { identity, pinned: false }).then(
    () => true,
    () => false,
  );
}

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

export function hasFuse(): boolean {
  try {
    accessSync("/dev/fuse", constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

async function lookUp(): Promise<Identity | undefined> {
  try {
    const [uid, gid] = [await run(["id", "-u", NAME], UNPINNED), await run(["id", "-g", NAME], UNPINNED)];
    return { uid: Number(uid), gid: Number(gid) };
  } catch {
    return undefined;
  }
}
