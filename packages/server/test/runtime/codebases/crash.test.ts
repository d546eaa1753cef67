import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aWhile } from "../../../../../test/support/eventually.ts";
import { rounds } from "../../../../../test/support/rounds.ts";
import { SERVER } from "../../../src/runtime/caller.ts";
import { shapeOf, temporary } from "./fixture.ts";
import { expected, randomOf, readVersion, type State, scripted } from "./model.ts";
import { openPlace } from "./opening.ts";

const ROUNDS = rounds(4);

test.each([
  ["all versions", 0],
  ["five versions", 5],
])(
  "a server that keeps %s and is killed at any moment loses nothing it acknowledged and leaves nothing half done",
  {
    timeout: 60_000 + ROUNDS * 20_000,
  },
  async (_title, kept) => {
    const retention = { versions: kept, bytes: 0 };
    const root = temporary();
    let id = "";
    {
      await using place = await openPlace(root);
      ({ id } = await place.codebases.create(SERVER, { name: "p", ownerId: "o" }));
    }
    const random = randomOf(Date.now());
    const history: State[] = [new Map()];
    const finished: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const acknowledged = await killedAfter(root, id, kept, 5 + random(400));

      await using place = await openPlace(root, { retention, log: ({ message }) => void finished.push(message) });
      const { codebases, metadata } = place;
      const { version } = await codebases.get(SERVER, id);
      const [least, most] = [acknowledged ?? history.length - 1, (acknowledged ?? history.length - 1) + 1];
      expect([least, most], `version ${version} after ${least} was acknowledged`).toContain(version);
      while (history.length <= version) {
        const state = history.at(-1)!;
        history.push(expected(state, scripted(history.length, state, history, kept), history)!);
      }
      expect(await metadata.unsettledChanges()).toEqual([]);
      expect(digest(shapeOf(join(root, "codebases", id, "tree")))).toEqual(
        digest(Object.fromEntries(history[version]!)),
      );
      const oldest = kept === 0 ? 1 : Math.max(1, version - kept + 1);
      const some = (): number => oldest + random(Math.max(1, version - oldest + 1));
      for (const old of new Set([version, oldest, some(), some()])) {
        if (old > version || version === 0) continue;
        const read = Object.fromEntries(await readVersion(codebases, id, old));
        expect(digest(read)).toEqual(digest(Object.fromEntries(history[old]!)));
      }
      expect(readdirSync(join(root, "codebases", id, "staging"))).toEqual([]);
      if (kept === 0) continue;
      const listed = (await metadata.listVersions(id, { limit: 1000 })).map((one) => one.version);
      expect(listed).toEqual(Array.from({ length: version === 0 ? 0 : version - oldest + 1 }, (_, n) => version - n));
      const kinds = readdirSync(join(root, "codebases", id, "kept")).map((name) => Number(name) > oldest);
      expect(kinds.filter((isNeeded) => !isNeeded)).toEqual([]);
    }
    console.log(
      `${ROUNDS} kills, ${history.length - 1} versions, ${finished.length} changes finished at the next start`,
    );
  },
);

/** Contents are long, and alike when they begin alike and are equally long. */
function digest(shape: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(shape).map(([path, value]) => [path, `${value.slice(0, 12)}, ${value.length}`]),
  );
}

/** Runs the child and kills it; gives the last step that it reported, if it came to one. */
async function killedAfter(root: string, id: string, kept: number, ms: number): Promise<number | undefined> {
  const program = join(import.meta.dirname, "crash-child.ts");
  const child = spawn(process.execPath, [program, root, id, String(kept)], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let output = "";
  const ready = new Promise<void>((resolve) => {
    child.stdout.on("data", (data: Buffer) => {
      output += data.toString();
      if (output.includes("ready")) resolve();
    });
  });
  await Promise.race([ready, exited]);
  await aWhile(ms);
  child.kill("SIGKILL");
  const [, signal] = await exited;
  expect(signal, "the child ended by itself").toBe("SIGKILL");
  const steps = [...output.matchAll(/^done (\d+)$/gm)].map(([, step]) => Number(step));
  return steps.at(-1);
}
