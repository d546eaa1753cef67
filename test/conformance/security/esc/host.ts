import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Rule } from "@agentfense/permission";
import type { Identity } from "../../../support/identity.ts";
import { fifo, file, link, socket, type Tree, treeState, writeTree } from "../../../support/tree.ts";
import { CANARY } from "../codebase.ts";

/** Reading everywhere, writing in /work, and something hidden. */
export const RULES: readonly Rule[] = [
  { pattern: "/**", permission: "read" },
  { pattern: "/work/**", permission: "write" },
  { pattern: "**/.env*", permission: "none", priority: 100 },
];

const REPOSITORY = join(import.meta.dirname, "../../../..");

/**
 * The host's side of a suite, in one temporary directory: the codebase with the attacking program in it, a directory of the
 * host that attacks aim at, and the server's state.
 */
export class HostSide implements Disposable {
  readonly home: string;
  /** Open to everybody, so that whoever gets out can read it and leave a mark. */
  readonly outside: string;
  readonly codebase: string;
  readonly state: string;
  readonly #before: Record<string, string>;
  #deltas = 0;

  constructor(server: Identity) {
    this.home = mkdtempSync(join(tmpdir(), "agentfense-escape-"));
    this.outside = join(this.home, "outside");
    this.codebase = join(this.home, "codebase");
    this.state = join(this.home, "state");
    chmodSync(this.home, 0o755);
    mkdirSync(this.outside);
    writeTree(this.outside, {
      "secret.txt": file({ content: CANARY.outside, mode: 0o666 }),
      "hook.sh": file({ content: `echo hooked > ${this.outside}/hooked\n`, mode: 0o755 }),
    });
    chmodSync(this.outside, 0o777);
    mkdirSync(this.codebase);
    writeTree(this.codebase, codebase(this.outside));
    mkdirSync(this.state, { mode: 0o711 });
    execFileSync("chown", ["-hR", `${server.uid}:${server.gid}`, this.home]);
    this.#addPrivilegedPrograms();
    this.#before = treeState(this.outside);
  }

  /** Texts that tell a sandbox where it is kept; none may be readable inside. */
  get ownPaths(): readonly string[] {
    return [this.home, basename(this.home), REPOSITORY];
  }

  /** A place for a delta; the server makes it. */
  newDelta(): string {
    this.#deltas += 1;
    return join(this.home, `delta-${this.#deltas}`);
  }

  /** Where the host has the workspaces and the home of a sandbox mounted. */
  mountPointOf(sandbox: string): string {
    const [found] = globSync(`*/${sandbox}`, { cwd: this.state });
    if (found === undefined) throw new Error(`no mount point of ${sandbox} in the state directory`);
    return join(this.state, found, "mount");
  }

  /** Where the host has the first workspace of a sandbox. */
  workspaceOf(sandbox: string): string {
    return join(this.mountPointOf(sandbox), "0");
  }

  /** The directory outside as it was, and as it is now. */
  outsideStates(): { before: Record<string, string>; now: Record<string, string> } {
    return { before: this.#before, now: treeState(this.outside) };
  }

  [Symbol.dispose](): void {
    const mounted = readFileSync("/proc/self/mountinfo", "utf8").includes(` ${this.home}/`);
    if (mounted) throw new Error(`something is still mounted below ${this.home}; it is left in place`);
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Programs of root with a set-user-id bit and with capabilities, as a codebase that came from an archive may have. */
  #addPrivilegedPrograms(): void {
    const [setuid, capable] = [join(this.codebase, "setuid-id"), join(this.codebase, "capable-cat")];
    copyFileSync("/usr/bin/id", setuid);
    copyFileSync("/usr/bin/cat", capable);
    chmodSync(capable, 0o755);
    chownSync(setuid, 0, 0);
    chmodSync(setuid, 0o6755);
    const everything = "bytes.fromhex('01000002ffffffff00000000ffffffff00000000')";
    execFileSync("python3", [
      "-c",
      `import os, sys; os.setxattr(sys.argv[1], "security.capability", ${everything})`,
      capable,
    ]);
  }
}

function codebase(outside: string): Tree {
  const secret = `${outside}/secret.txt`;
  return {
    "inside.py": source("inside.py"),
    probes: Object.fromEntries(
      globSync("*.py", { cwd: join(import.meta.dirname, "probes") }).map((name) => [name, source(`probes/${name}`)]),
    ),
    ".env": CANARY.hidden,
    links: {
      absolute: link(secret),
      relative: link(`../../../../../../../..${secret}`),
      "outside-directory": link(outside),
      passwd: link("/etc/passwd"),
      shadow: link("/etc/shadow"),
      "process-1": link(`/proc/1/root${secret}`),
      itself: link("itself"),
    },
    pipes: { "old.fifo": fifo(), "old.sock": socket() },
    src: { "app.ts": "export const app = 1;\n" },
    output: {},
    work: {
      "notes.txt": "notes\n",
      sub: { "inner.txt": "inner\n" },
      deep: { "secret.txt": "deep\n" },
      "outside-link": link(secret),
    },
  };
}

function source(name: string): string {
  return readFileSync(join(import.meta.dirname, name), "utf8");
}

/** Every path below a directory whose mode has a set-id bit, or that is a device. */
export function privilegedEntries(root: string): string[] {
  return globSync("**", { cwd: root }).filter((path) => {
    const entry = lstatSync(join(root, path));
    return (entry.mode & 0o6000) !== 0 || entry.isCharacterDevice() || entry.isBlockDevice();
  });
}
