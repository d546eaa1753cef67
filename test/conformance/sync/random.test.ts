import { expect, test } from "vitest";
import { type Project, type State, serveProjects, type VersionInfo } from "../../support/project.ts";
import { rounds } from "../../support/rounds.ts";
import { Random } from "../model/random.ts";
import { Actor, type Attempt, lastWords, PLAIN, randomLevels, randomScript, succeeded } from "../service/crowd.ts";

// Sandboxes and an uploader do what comes to their minds, one after the other or all at once. After every step the versions
// say who changed what: nobody what the rules do not let him write, and each file is as the last to commit it left it.

const STEPS = 60;
const ground = serveProjects();
/** The usual run is the same each time; a soak goes on with seeds that nobody has seen. */
const KNOWN_SEEDS = [679497671, 1, 2, 3];
const asked = Number(process.env.AGENTFENSE_SEED);
const seeds =
  Number.isInteger(asked) && asked > 0
    ? [asked]
    : Array.from({ length: rounds(2) }, (_, round) => KNOWN_SEEDS[round] ?? 1 + Math.floor(Math.random() * 1e9));

test.for(seeds)(
  "L-26 random work on one codebase changes only what it may, and the last writer wins, seed %i",
  async (seed) => {
    console.log(`${STEPS} steps of a crowd: repeat with AGENTFENSE_SEED=${seed}`);
    const random = new Random(seed);
    const files = Object.fromEntries([...PLAIN, "x/a", "x/b", "y/a", "y/b"].map((path) => [path, "first\n"]));
    const project = await ground.project(files);
    const actors = [
      await Actor.join(project, "on-exec", random),
      await Actor.join(project, "on-exec", random),
      await Actor.join(project, "manual", random),
      await Actor.join(project, "never", random),
    ];
    const crowd = new Crowd(project, actors, random);
    for (let step = 0; step < STEPS; step++) await crowd.step();
    for (const { id } of actors) await project.stop(id);
    await crowd.check("all stopped", []);
  },
);

/** An attempt that succeeded and is to be committed. */
interface Work extends Attempt {
  /** The sandbox, or "" for an upload. */
  readonly by: string;
}

class Crowd {
  readonly #project: Project;
  readonly #actors: readonly Actor[];
  readonly #random: Random;
  readonly #taken: string[] = [];
  #state: State = {};
  #version = 0;
  #texts = 0;
  /** By path: the versions that changed it. */
  readonly #touched = new Map<string, VersionInfo[]>();

  constructor(project: Project, actors: readonly Actor[], random: Random) {
    this.#project = project;
    this.#actors = actors;
    this.#random = random;
  }

  async step(): Promise<void> {
    if (this.#version === 0) await this.check("begin", []);
    const random = this.#random;
    const actor = random.pick(this.#actors);
    const kind = random.weighted({ exec: 8, together: 3, upload: 3, apply: 5, discard: 1, rules: 2, restart: 1 });
    const manual = this.#actors.find(({ mode }) => mode === "manual")!;
    switch (kind) {
      case "exec":
        return await this.check(...(await this.#exec(actor)));
      case "upload":
        return await this.check(...(await this.#upload()));
      case "together": {
        // What a sandbox that keeps its changes saw of others at work cannot be told afterwards.
        const others = this.#actors.filter(({ mode }) => mode === "on-exec");
        const all = await Promise.all([...others.map((each) => this.#exec(each)), this.#upload()]);
        return await this.check(
          all.map(([told]) => told).join("\n  with "),
          all.flatMap(([, written]) => written),
        );
      }
      case "apply":
        return await this.#apply(manual);
      case "discard":
        await this.#project.grpc.call("SandboxService", "DiscardChanges", { sandbox_id: manual.id });
        manual.pending.clear();
        return await this.check("discard", []);
      case "rules":
        actor.levels = randomLevels(random);
        await this.#project.setLevels(actor.id, actor.levels);
        return await this.check(`rules of ${actor.mode} ${actor.id}: ${JSON.stringify(actor.levels)}`, []);
      case "restart":
        await this.#project.stop(actor.id);
        await this.#project.start(actor.id);
        return await this.check(`restart of ${actor.mode}`, []);
    }
  }

  /** What is committed by now, by whom, is what the rules let them write; `written` has the last word of each writer. */
  async check(told: string, written: readonly Work[]): Promise<void> {
    this.#taken.push(told);
    const about = `${this.#taken.slice(-12).join("\n")}\nrules: ${JSON.stringify(this.#actors.map(({ id, levels }) => [id, levels]))}`;
    const [state, newest] = [await this.#project.state(), await this.#project.newest()];
    const changed = new Set<string>();
    for (let number = this.#version + 1; number <= newest; number++) {
      const version = await this.#project.version(number);
      const author = this.#actors.find(({ id }) => id === version.sandbox_id);
      const paths = version.changes.map(({ path }) => path);
      for (const path of paths) {
        changed.add(path);
        this.#touched.set(path, [...(this.#touched.get(path) ?? []), version]);
      }
      if (version.sandbox_id === "") continue;
      expect(author?.mode, about).not.toBe("never");
      expect(
        paths.filter((path) => author?.mayWrite(path) !== true),
        about,
      ).toEqual([]);
    }
    if (this.#version > 0) {
      const differs = [...new Set([...Object.keys(this.#state), ...Object.keys(state)])].filter(
        (path) => this.#state[path] !== state[path],
      );
      expect(
        differs.filter((path) => !changed.has(path)),
        about,
      ).toEqual([]);
      for (const path of PLAIN) this.#checkLast(path, state, written, about);
    }
    this.#state = state;
    this.#version = newest;
  }

  /** The file is what one of the writers left, and the last version of it is that writer's. */
  #checkLast(path: string, state: State, written: readonly Work[], about: string): void {
    const writers = written.filter((work) => work.path === path);
    const now = state[path]?.trim();
    if (writers.length === 0) {
      expect(now, about).toBe(this.#state[path]?.trim());
      return;
    }
    expect(
      writers.map(({ content }) => content),
      about,
    ).toContain(now);
    if (now === this.#state[path]?.trim()) return; // deleted, and was not there
    const authors = writers.filter(({ content }) => content === now).map(({ by }) => by);
    expect(authors, about).toContain(this.#touched.get(path)?.at(-1)?.sandbox_id);
  }

  async #exec(actor: Actor): Promise<[told: string, written: readonly Work[]]> {
    const isThere = (path: string): boolean =>
      actor.pending.has(path) ? actor.pending.get(path)!.content !== undefined : path in this.#state;
    const script = randomScript(this.#random, () => this.#text(), isThere);
    const { stdout } = await this.#project.run(actor.id, script.command);
    const done = succeeded(script, stdout);
    const told = `${actor.mode} ${actor.id}: ${script.command.replaceAll("\n", "; ")}\n   did ${JSON.stringify(done)}`;
    for (const { path } of done) expect(actor.mayWrite(path), told).toBe(true);
    if (actor.mode === "on-exec") return [told, lastWords(done).map((attempt) => ({ ...attempt, by: actor.id }))];
    for (const attempt of done) this.#keep(actor, attempt);
    return [told, []];
  }

  /** What a sandbox has that does not sync by itself. */
  #keep(actor: Actor, { path, content }: Attempt): void {
    const before = actor.pending.get(path);
    const isInCodebase = path in this.#state;
    // Nothing of the codebase is deleted when there is nothing.
    if (content === undefined && !isInCodebase) actor.pending.delete(path);
    else {
      // A file that takes the place of a deleted one is as new as that.
      const isSameFile = before !== undefined && (before.content === undefined) === (content === undefined);
      actor.pending.set(path, { content, since: isSameFile ? before.since : this.#version });
    }
  }

  async #upload(): Promise<[told: string, written: readonly Work[]]> {
    const path = this.#random.pick(PLAIN);
    const isDeletion = path in this.#state && this.#random.chance(20);
    const content = isDeletion ? undefined : this.#text();
    await this.#project.write({ [path]: content === undefined ? null : `${content}\n` });
    return [`upload ${path}: ${content}`, [{ path, content, by: "" }]];
  }

  async #apply(actor: Actor): Promise<void> {
    const due = [...actor.pending].filter(([path]) => actor.mayWrite(path));
    const { version } = await this.#project.apply(actor.id);
    for (const [path] of due) actor.pending.delete(path);
    await this.check(
      `apply: ${JSON.stringify(due)}`,
      due.map(([path, { content }]) => ({ path, content, by: actor.id })),
    );
    if (version === 0) return;
    const { conflicts, changes } = await this.#project.version(version);
    const expected = due
      .filter(([path]) => changes.some((change) => change.path === path))
      .map(([path, { since }]) => ({ path, last: this.#lastForeign(path, since, actor.id, version) }))
      .filter(({ last }) => last !== undefined)
      .map(({ path, last }) => ({
        path,
        replaced_version: last!.version,
        replaced_sandbox_id: last!.sandbox_id,
      }));
    const plain = conflicts.filter(({ path }) => (PLAIN as readonly string[]).includes(path));
    const byPath = (a: { path: string }, b: { path: string }): number => (a.path < b.path ? -1 : 1);
    expect([...plain].sort(byPath), this.#taken.slice(-12).join("\n")).toEqual(expected.sort(byPath));
  }

  #lastForeign(path: string, since: number, own: string, before: number): VersionInfo | undefined {
    return this.#touched
      .get(path)
      ?.filter(({ version, sandbox_id }) => Number(version) > since && Number(version) < before && sandbox_id !== own)
      .at(-1);
  }

  #text(): string {
    this.#texts += 1;
    return `t${this.#texts}`;
  }
}
