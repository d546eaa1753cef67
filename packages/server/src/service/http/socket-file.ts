import { once } from "node:events";
import { chmod, link, lstat, mkdtemp, open, rm, unlink } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { RuntimeError } from "../../runtime/runtime-error.ts";

/** The file of a Unix socket (0600) that somebody listens at. */
export class SocketFile {
  readonly path: string;
  readonly #inode: bigint;

  private constructor(path: string, inode: bigint) {
    this.path = path;
    this.#inode = inode;
  }

  /**
   * Has `listen` bind a socket, which appears at the path when it is complete. What a dead server left there is replaced;
   * everything else is refused.
   *
   * A socket is made with the modes that the umask leaves it, and narrowed only then. So it is bound in a directory that
   * nobody else can enter and linked to its place afterwards: at no moment can others connect, and no umask is changed, which
   * threads share. The way through /proc keeps the longer name out of the length a socket's path may have.
   */
  static async bind(path: string, listen: (path: string) => Promise<void>): Promise<SocketFile> {
    await clearPlace(path);
    const staging = await mkdtemp(join(dirname(path), ".agentfense-"));
    try {
      await using directory = await open(staging, "r");
      const bound = `/proc/self/fd/${directory.fd}/agentfense.sock`;
      await listen(bound);
      await chmod(bound, 0o600);
      await link(bound, path);
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
    const { ino } = await lstat(path, { bigint: true });
    return new SocketFile(path, ino);
  }

  /** Unless somebody else has taken the place. */
  async remove(): Promise<void> {
    const there = await lstat(this.path, { bigint: true }).catch(undefinedIfGone);
    if (there?.ino === this.#inode) await unlink(this.path).catch(undefinedIfGone);
  }
}

/** Takes the socket of a dead server away. */
async function clearPlace(path: string): Promise<void> {
  const there = await lstat(path).catch(undefinedIfGone);
  if (there === undefined) return;
  if (!there.isSocket()) throw taken(path, "something that is no socket is there");
  if (await answers(path)) throw taken(path, "a server listens there");
  await unlink(path).catch(undefinedIfGone);
}

/** Whether somebody takes connections; throws when that cannot be found out. */
async function answers(path: string): Promise<boolean> {
  const socket = connect({ path });
  try {
    await once(socket, "connect");
    return true;
  } catch (error) {
    const known = ANSWERS.get((error as NodeJS.ErrnoException).code ?? "");
    if (known === undefined) throw error;
    return known;
  } finally {
    socket.destroy();
  }
}

/** EAGAIN: too many wait to be taken already. */
const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ["EAGAIN", true],
  ["ECONNREFUSED", false],
  ["ENOENT", false],
]);

function taken(path: string, why: string): RuntimeError {
  return new RuntimeError("RESOURCES_EXHAUSTED", `cannot listen at unix:${path}: ${why}`, {
    hint: "choose another path, or remove it if it is of no use",
  });
}

function undefinedIfGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
