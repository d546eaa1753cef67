import { readFileSync } from "node:fs";
import { listChanges } from "@agentfense/server/isolation";
import { expect, test } from "vitest";
import { describeAttack } from "../../../support/arena.ts";
import { AT, MAP, O, PROT, RENAME } from "../../../support/constants.ts";
import { PeerEnded } from "../../../support/peer.ts";
import type { Call, Probe } from "../../../support/probe.ts";
import { rounds } from "../../../support/rounds.ts";
import type { Tree } from "../../../support/tree.ts";
import type { TestWorkspace } from "../../../support/workspace.ts";
import { changesOf, creationsAt, departuresOf, usesOf } from "../attacks.ts";
import { ALL_CANARIES, codebase, HIDDEN_PATHS, RULES } from "../codebase.ts";

const VIEW_FILES = ["/docs/guide.md", "/docs/tool.sh", "/work/shown.txt"] as const;

/** All of /src becomes view; /README.md disappears. */
const STRICTER = [
  ...RULES,
  { pattern: "/src/**", permission: "view", priority: 1 },
  { pattern: "/README.md", permission: "none", priority: 300 },
  { pattern: "/work/notes.txt", permission: "view", priority: 1 },
] as const;

const REFUSED = ["EACCES", "ENOENT", "ESTALE", "EBADF"];

describeAttack("VIEW: handles, caches and copies", (arena) => {
  const open = (options: { revocable?: boolean; passthrough?: boolean } = {}): Promise<TestWorkspace> =>
    arena.open({ lower: codebase({ hidden: true }), rules: RULES, ...options });

  test("VIEW-23 many processes at once never get each other's answers", async () => {
    const names = Array.from({ length: 60 }, (_, index) => `file-${index}`);
    const kinds = ["hidden", "view", "read", "write"] as const;
    const lower: Tree = Object.fromEntries(
      kinds.map((kind) => [kind, Object.fromEntries(names.map((name) => [name, `${kind}/${name} `.repeat(50)]))]),
    );
    const rules = [
      { pattern: "/hidden/**", permission: "none" },
      { pattern: "/view/**", permission: "view" },
      { pattern: "/read/**", permission: "read" },
      { pattern: "/write/**", permission: "write" },
    ] as const;
    const workspace = await arena.open({ lower, rules });
    const expected = { hidden: "ENOENT", view: "EACCES", read: "content", write: "content" };
    const attack = async (probe: Probe, seed: number): Promise<string[]> => {
      const mistakes: string[] = [];
      for (let round = 0; round < rounds(4); round++) {
        const targets = Array.from({ length: 400 }, (_, index) => {
          const pick = (index * 7919 + seed * 104729 + round * 31) >>> 0;
          return { kind: kinds[pick % 4] ?? "read", name: names[(pick >>> 2) % names.length] ?? "" };
        });
        const answers = await probe.batch(
          targets.map(({ kind, name }) => ["readFile", workspace.at(`/${kind}/${name}`)] as const),
        );
        for (const [index, { kind, name }] of targets.entries()) {
          const answer = answers[index];
          const right =
            expected[kind] === "content"
              ? Buffer.from(answer?.data ?? []).toString() === `${kind}/${name} `.repeat(50)
              : answer?.errno === expected[kind];
          if (!right) mistakes.push(`/${kind}/${name}: ${answer?.errno}`);
        }
      }
      return mistakes;
    };
    const probes = [arena.probe, await arena.anotherProbe(), await arena.anotherProbe(), await arena.anotherProbe()];
    expect((await Promise.all(probes.map(attack))).flat()).toEqual([]);
  });

  test("VIEW-24 on a revocable mount an open descriptor ends with the right to read", async () => {
    const { probe } = arena;
    const workspace = await open({ revocable: true });
    expect(workspace.features.passthrough).toBe(false);
    const paths = ["/src/app.ts", "/README.md", "/work/notes.txt"];
    const fds: number[] = [];
    for (const path of paths)
      fds.push((await probe.call("openat", workspace.at(path), path.startsWith("/work") ? O.RDWR : O.RDONLY)).ret);
    const read = () => probe.errnos(fds.map((fd) => ["pread", fd, 100, 0] as const));
    expect(await read()).toEqual(["OK", "OK", "OK"]);
    await workspace.updateRules(STRICTER);
    for (const errno of await read()) expect(REFUSED).toContain(errno);
    const [app = -1, readme = -1, notes = -1] = fds;
    const others = await probe.errnos([
      ["read", app, 10],
      ["mmap", readme, 4096, PROT.READ, MAP.PRIVATE],
      ["pwrite", notes, "changed", 0],
      ["tryOpen", `/proc/self/fd/${app}`, O.RDONLY],
      ["tryOpen", `/proc/self/fd/${readme}`, O.RDONLY],
      ["tryOpen", `/proc/self/fd/${notes}`, O.RDWR],
    ]);
    const [first, mapping, ...rest] = others;
    for (const errno of [first, ...rest]) expect(REFUSED).toContain(errno);
    expect(["OK", ...REFUSED]).toContain(mapping);
    await probe.batch(fds.map((fd) => ["close", fd] as const));
    await workspace.updateRules(RULES);
    expect(await probe.text(workspace.at("/work/notes.txt"))).toBe("notes\n");
    expect(await probe.text(workspace.at("/README.md"))).toBe("about this\n");
  });

  test("VIEW-24 on a revocable mount a mapping ends with the right to read", async () => {
    const workspace = await open({ revocable: true });
    const victim = await arena.anotherProbe();
    const { ret: fd } = await victim.call("openat", workspace.at("/src/app.ts"), O.RDONLY);
    const { ret: mapping } = await victim.call("mmap", fd, 4096, PROT.READ, MAP.SHARED);
    const content = readFileSync(`${workspace.lower}/src/app.ts`, "utf8");
    expect(Buffer.from((await victim.call("peek", mapping, content.length)).data ?? []).toString()).toBe(content);
    await workspace.updateRules(STRICTER);
    const after = await victim.call("peek", mapping, content.length).catch((error: unknown) => {
      if (error instanceof PeerEnded) return error.reason;
      throw error;
    });
    expect(after).toBe("SIGBUS");
  });

  test("VIEW-24 without revocation an open descriptor keeps what it was opened for, and nothing can be opened again", async () => {
    const { probe } = arena;
    const workspace = await open();
    const { ret: fd } = await probe.call("openat", workspace.at("/src/app.ts"), O.RDONLY);
    await workspace.updateRules(STRICTER);
    const kept = await probe.call("pread", fd, 100, 0);
    expect(Buffer.from(kept.data ?? []).toString()).toBe("export const app = 1;\n");
    const again = await probe.errnos([
      ["tryOpen", `/proc/self/fd/${fd}`, O.RDONLY],
      ["tryOpen", workspace.at("/src/app.ts"), O.RDONLY],
      ["readFile", workspace.at("/src/app.ts")],
      ["tryOpen", workspace.at("/README.md"), O.RDONLY],
    ]);
    await probe.call("close", fd);
    expect(again).toEqual(["EACCES", "EACCES", "EACCES", "ENOENT"]);
  });

  test("VIEW-25 pages cached while a file was readable, here or in another workspace, serve nobody else", async () => {
    const { probe } = arena;
    const readable = await open();
    const restricted = await arena.open({ lower: codebase({ hidden: true }), rules: STRICTER });
    expect(await probe.text(readable.at("/src/app.ts"))).toContain("app");
    expect(await probe.text(restricted.at("/src/app.ts"))).toBe("EACCES");
    expect(await probe.text(restricted.at("/README.md"))).toBe("ENOENT");
    for (let round = 0; round < 3; round++) {
      expect(await probe.text(readable.at("/src/app.ts"))).toContain("app");
      await readable.updateRules(STRICTER);
      expect(await probe.text(readable.at("/src/app.ts"))).toBe("EACCES");
      expect(await probe.text(readable.at("/README.md"))).toBe("ENOENT");
      await readable.updateRules(RULES);
    }
  });

  test("VIEW-26 passthrough hands the kernel only what may be read now, and never a codebase file to write", async () => {
    const { probe } = arena;
    const workspace = await open({ passthrough: true });
    expect(await probe.text(workspace.at("/src/app.ts"))).toBe("export const app = 1;\n");
    const { ret: reader } = await probe.call("openat", workspace.at("/work/notes.txt"), O.RDONLY);
    const errnos = await probe.errnos([
      ...VIEW_FILES.map((path) => ["tryOpen", workspace.at(path), O.RDONLY] as const),
      ["tryOpen", `/proc/self/fd/${reader}`, O.RDONLY],
      ["writeFile", workspace.at("/work/notes.txt"), "changed"],
      ["tryOpen", workspace.at("/src/app.ts"), O.RDWR],
    ]);
    expect(errnos).toEqual(["EACCES", "EACCES", "EACCES", "OK", "OK", "EACCES"]);
    const coherent = await probe.call("pread", reader, 100, 0);
    expect(Buffer.from(coherent.data ?? []).toString()).toBe("changed");
    const { ret: reopened } = await probe.call("openat", `/proc/self/fd/${reader}`, O.RDWR);
    expect(await probe.errnoOf("pwrite", reopened, "again", 0)).toBe("OK");
    await probe.batch([
      ["close", reader],
      ["close", reopened],
    ]);
    await workspace.updateRules(STRICTER);
    expect(await probe.text(workspace.at("/src/app.ts"))).toBe("EACCES");
    expect(await probe.text(workspace.at("/work/notes.txt"))).toBe("EACCES");
    workspace.assertLowerUntouched();
  });

  /** Everything that could pull a protected file into the delta. */
  const pulls = (workspace: TestWorkspace): Call[] =>
    [...VIEW_FILES, ...HIDDEN_PATHS].flatMap((path) => [
      ...changesOf(workspace.at(path)),
      ...departuresOf(workspace.at(path), workspace.at("/work/stolen")),
      ["tryOpen", workspace.at(path), O.RDWR] as const,
      ["tryOpen", workspace.at(path), O.WRONLY | O.APPEND] as const,
      ["unlinkat", workspace.at(path)] as const,
      ["renameat2", workspace.at("/work/own"), workspace.at(path), RENAME.EXCHANGE] as const,
    ]);

  test("VIEW-27 no refused operation copies anything into the delta", async () => {
    const { probe } = arena;
    const workspace = await open();
    expect(await probe.errnoOf("writeFile", workspace.at("/work/own"), "own")).toBe("OK");
    const before = workspace.deltaPaths();
    expect(await probe.errnos(pulls(workspace))).not.toContain("OK");
    expect(workspace.deltaPaths()).toEqual(before);
    for (const canary of ALL_CANARIES) expect(workspace.deltaPathsHolding(canary)).toEqual([]);
  });

  test("VIEW-28 the list of changes has what the agent changed and nothing it may not read", async () => {
    const { probe } = arena;
    const workspace = await open();
    await probe.batch([
      ["writeFile", workspace.at("/work/own"), "own"],
      ["writeFile", workspace.at("/work/notes.txt"), "changed"],
    ]);
    await probe.batch(pulls(workspace));
    const changes = await Array.fromAsync(listChanges({ delta: workspace.delta, lowers: [workspace.lower] }));
    expect(
      changes
        .filter((change) => change.type !== "directory")
        .map(({ kind, path }) => `${kind} ${path}`)
        .sort(),
    ).toEqual(["added /work/own", "modified /work/notes.txt"]);
  });

  test("VIEW-29 after every attack no readable byte holds a canary", async () => {
    const { probe } = arena;
    const workspace = await open();
    await probe.batch([
      ["writeFile", workspace.at("/work/own"), "own"],
      ["mkdirat", workspace.at("/work/own-dir")],
    ]);
    const targets = [...VIEW_FILES, ...HIDDEN_PATHS];
    await probe.batch(
      targets.flatMap((path) => [
        ...usesOf(workspace.at(path)),
        ...departuresOf(workspace.at(path), workspace.at("/work/stolen")),
        ["symlinkat", workspace.at(path), workspace.at(`/work/link-${path.replaceAll("/", "-")}`)] as const,
        ["linkat", workspace.at(path), workspace.at("/work/stolen"), AT.SYMLINK_FOLLOW] as const,
      ]),
    );
    await probe.batch(
      targets.flatMap((path) =>
        creationsAt(workspace.at(path), workspace.at("/work/own"), workspace.at("/work/own-dir")),
      ),
    );
    const { found } = await probe.call("scan", workspace.mountPoint, [...ALL_CANARIES]);
    expect(found).toEqual([]);
    await workspace.remount();
    expect((await probe.call("scan", workspace.mountPoint, [...ALL_CANARIES])).found).toEqual([]);
    for (const canary of ALL_CANARIES) expect(workspace.deltaPathsHolding(canary)).toEqual([]);
  });
});
