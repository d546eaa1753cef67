import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { homeDirectory, lockHome } from "../../isolation/instance/home-directory.ts";
import { Queue } from "../../isolation/waiting.ts";
import type { Caller } from "../caller.ts";
import { invalid, RuntimeError } from "../runtime-error.ts";
import { namesIn } from "../store/claim.ts";
import type { SandboxRecord } from "../store/store.ts";
import type { HomeRecord } from "./api.ts";
import type { Parts } from "./parts.ts";

// Homes that outlive their sandboxes. On a server they are names of an owner's:
//
//   <homes>/<SHA-256 of the owner's id>/<name>    the home
//   <homes>/<SHA-256 of the owner's id>/.owner    the owner's id
//
// In a program that is its own server they are directories, wherever it likes.

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const KEY = /^[0-9a-f]{64}$/;
const OWNER_FILE = ".owner";

/** A home that a sandbox runs with, until it is released. */
export interface TakenHome {
  readonly directory: string;
  release(): void;
}

type HomesParts = Pick<Parts, "homeDirectory" | "deltaDirectory" | "deltas" | "codebases" | "audit" | "defaults">;

export class Homes {
  readonly #parts: HomesParts;
  /** Who has a home, by its directory; "": whoever deletes it. */
  readonly #users = new Map<string, string>();
  /** A new home is counted and made before the next one is. */
  readonly #turns = new Queue();

  constructor(parts: HomesParts) {
    this.#parts = parts;
  }

  /** What a request asks for, as the record of its sandbox is to have it. */
  async admit(home: string, codebase: { readonly id: string; readonly version: number }): Promise<string> {
    const { homeDirectory: homes, deltaDirectory, codebases } = this.#parts;
    if (home === "") return home;
    if (homes !== undefined) {
      if (NAME.test(home)) return home;
      throw invalid("home is a name of up to 64 letters, digits, _, . and -, and begins with a letter or a digit");
    }
    if (!home.includes("/")) throw invalid("home is a directory here", `write ./${home} for one beside you`);
    const layer = await codebases.open(codebase.id, codebase.version);
    try {
      return await homeDirectory(home, [layer.directory, deltaDirectory]);
    } finally {
      await layer.release();
    }
  }

  /** For a sandbox that starts; undefined when it has a home of its own. */
  async take({ id, ownerId, home }: SandboxRecord): Promise<TakenHome | undefined> {
    if (home === "") return undefined;
    const directory = this.#placeOf(ownerId, home);
    const taken = this.#claim(directory, id, home);
    try {
      // Names are of this server alone; a directory other processes may want as well.
      const isName = this.#parts.homeDirectory !== undefined;
      await (isName ? this.#turns.run(() => this.#make(ownerId, home)) : homeDirectory(home, []));
      const lock = isName ? undefined : lockHome(directory);
      return {
        directory,
        release() {
          lock?.[Symbol.dispose]();
          taken[Symbol.dispose]();
        },
      };
    } catch (error) {
      taken[Symbol.dispose]();
      throw error;
    }
  }

  async list(caller: Caller, ownerId: string): Promise<readonly HomeRecord[]> {
    // Whoever asks for another owner's gets what that owner has for them: nothing.
    if (caller.ownerId !== undefined && ownerId !== "" && ownerId !== caller.ownerId) return [];
    const { homeDirectory: homes } = this.#parts;
    if (homes === undefined) return [];
    const asked = caller.ownerId ?? (ownerId === "" ? undefined : ownerId);
    const keys = asked === undefined ? (await namesIn(homes)).filter((name) => KEY.test(name)) : [keyOf(asked)];
    const found = await Promise.all(
      keys.map(async (key) => {
        const names = (await namesIn(join(homes, key))).filter((name) => NAME.test(name));
        const owner = asked ?? (names.length > 0 ? await readFile(join(homes, key, OWNER_FILE), "utf8") : "");
        const sandboxOf = (name: string): string => this.#users.get(join(homes, key, name)) ?? "";
        return names.sort().map((name) => ({ name, ownerId: owner, sandboxId: sandboxOf(name) }));
      }),
    );
    return found.flat();
  }

  async delete(caller: Caller, ownerId: string, name: string): Promise<void> {
    const owner = caller.ownerId ?? ownerId;
    const isKnown = (await this.list(caller, ownerId)).some((home) => home.name === name && home.ownerId === owner);
    if (!isKnown) throw new RuntimeError("HOME_NOT_FOUND", "home not found");
    const directory = this.#placeOf(owner, name);
    using _taken = this.#claim(directory, "", name);
    await this.#parts.deltas.remove(directory);
    this.#parts.audit.record({ type: "home_deleted", ownerId: owner, keyId: caller.keyId, data: { home: name } });
  }

  #placeOf(ownerId: string, home: string): string {
    const { homeDirectory: homes } = this.#parts;
    return homes === undefined ? home : join(homes, keyOf(ownerId), home);
  }

  #claim(directory: string, sandboxId: string, home: string): Disposable {
    const user = this.#users.get(directory);
    if (user !== undefined) throw inUse(home, user);
    this.#users.set(directory, sandboxId);
    return { [Symbol.dispose]: () => void this.#users.delete(directory) };
  }

  async #make(ownerId: string, name: string): Promise<void> {
    const { homeDirectory: homes = "", defaults } = this.#parts;
    const { maxHomesPerOwner: maxPerOwner } = defaults;
    const place = join(homes, keyOf(ownerId));
    const names = (await namesIn(place)).filter((one) => NAME.test(one));
    if (names.includes(name)) return;
    if (maxPerOwner > 0 && names.length >= maxPerOwner) {
      throw new RuntimeError("LIMIT_EXCEEDED", `an owner has at most ${maxPerOwner} homes`, {
        details: { limit: String(maxPerOwner) },
        hint: "delete one first, or raise sandbox.max_homes_per_user in the server's configuration",
      });
    }
    await mkdir(place, { recursive: true, mode: 0o700 });
    await writeFile(join(place, OWNER_FILE), ownerId, { mode: 0o600 });
    await mkdir(join(place, name), { mode: 0o700 });
  }
}

function keyOf(ownerId: string): string {
  return createHash("sha256").update(ownerId).digest("hex");
}

function inUse(home: string, sandboxId: string): RuntimeError {
  const who = sandboxId === "" ? "is being deleted" : `is in use by the sandbox ${sandboxId}`;
  return new RuntimeError("HOME_IN_USE", `the home ${home} ${who}`, {
    ...(sandboxId === "" ? {} : { details: { sandbox_id: sandboxId } }),
    hint: "stop that sandbox first, or use another home",
  });
}
