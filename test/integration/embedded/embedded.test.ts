import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Permission } from "@agentfense/protocol/common";
import { NetworkMode, SyncMode } from "@agentfense/protocol/sandbox";
import { EmbeddedEngine, Sandbox } from "agentfense";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { aTickOfFileTimes } from "../../support/eventually.ts";
import { failureOf, Workshop, WRITE_ALL } from "./workshop.ts";

let workshop: Workshop;
beforeAll(async () => {
  workshop = await Workshop.open();
});
afterAll(async () => {
  await workshop?.[Symbol.asyncDispose]();
});

test("the host's network is there for those who ask, unless the program said otherwise, and no hint names a server", async () => {
  const host = await workshop.on(workshop.project(), { network: NetworkMode.HOST });
  const own = readlinkSync("/proc/self/ns/net");
  expect(await workshop.run(host, "readlink /proc/self/ns/net")).toBe(`${own}\n`);

  await using strict = await Workshop.open({ runtimes: ["bwrap"], networks: [] });
  const engine = strict.engine;
  const directory = strict.project();
  await expect(Sandbox.fromLocal(directory, { engine, network: "host" })).rejects.toMatchObject({
    message: "the network mode host is not enabled in this engine",
    hint: "add host to the option networks of the engine",
  });
  await expect(Sandbox.fromLocal(directory, { engine, runtime: "docker" })).rejects.toMatchObject({
    message: "the runtime docker is not available in this engine",
    hint: "it has bwrap; add docker to the option runtimes of the engine",
  });
});

test("a filtered network knows the names of its list, which can be replaced, and tells what was refused", async () => {
  const { engine } = workshop;
  await using sandbox = await Sandbox.fromLocal(workshop.project(), { engine, network: { allow: ["a.example:443"] } });
  const known = async (): Promise<string> =>
    (await sandbox.run("for name in a.example b.example; do getent hosts $name > /dev/null && echo $name; done; true"))
      .stdout;
  expect(sandbox.info).toMatchObject({ network: "filtered", networkRules: [{ host: "a.example", ports: [443] }] });
  expect(await known()).toBe("a.example\n");
  expect(await sandbox.updateNetwork({ allow: ["b.example:443"] })).toEqual([{ host: "b.example", ports: [443] }]);
  expect(await known()).toBe("b.example\n");
  const denied: unknown[] = [];
  for await (const { data } of sandbox.events({ types: ["connection_denied"] })) {
    const { program: _, ...refusal } = data; // where it was found in time
    denied.push(refusal);
    if (denied.length === 2) break;
  }
  expect(denied).toEqual([
    { host: "b.example", port: 0, count: 1, sentence: expect.stringContaining("ask your user for --allow b.example") },
    { host: "a.example", port: 0, count: 1, sentence: expect.stringContaining("ask your user for --allow a.example") },
  ]);
});

test("a sandbox is kept as it is, forked and taken back, and what the forks changed can be applied", async () => {
  const { engine } = workshop;
  const directory = workshop.project();
  const permissions = [{ pattern: "**", permission: "write" }] as const;
  await using sandbox = await Sandbox.fromLocal(directory, { engine, permissions, env: { NAME: "first" } });
  await sandbox.run("echo base > work; echo login > ~/login");
  const { id } = await sandbox.snapshot("base");
  await sandbox.run("echo later > work");
  const [one, two] = await sandbox.fork({ count: 2, snapshotId: id, env: { OTHER: "own" } });
  await using _one = one!;
  await using _two = two!;
  expect(one).toBeInstanceOf(Sandbox);
  expect((await one!.run("cat work ~/login; echo $NAME $OTHER")).stdout).toBe("base\nlogin\nfirst own\n");
  await one!.run("echo one > work");
  await two!.run("rm work; echo two > two");
  expect((await two!.changes().toArray()).map(({ kind, path }) => `${kind} ${path}`)).toEqual(["added /two"]);
  expect((await sandbox.run("cat work")).stdout).toBe("later\n");
  await expect(sandbox.restore("snap_00000000000000000000000000000000")).rejects.toMatchObject({
    code: "SNAPSHOT_NOT_FOUND",
  });
  const background = await sandbox.spawn("sleep 1000");
  await expect(sandbox.restore(id, { processes: "refuse" })).rejects.toMatchObject({ code: "SNAPSHOT_REFUSED" });
  await sandbox.restore(id);
  await expect(sandbox.process(background.number)).rejects.toMatchObject({ code: "PROCESS_NOT_FOUND" });
  expect((await sandbox.run("cat work")).stdout).toBe("base\n");
  await using again = await Sandbox.fromSnapshot(id, { engine });
  expect((await again.run("cat work")).stdout).toBe("base\n");
  await one!.apply();
  expect(text(directory, "work")).toBe("one\n");
  expect((await sandbox.snapshots()).map(({ label }) => label)).toEqual(["base"]);
  await sandbox.deleteSnapshot(id);
  expect(await sandbox.snapshots()).toEqual([]);
});

const text = (...path: string[]): string => readFileSync(join(...path), "utf8");

describe("a sandbox on a directory", () => {
  test("shows what is there without a copy, and hidden files not at all", async () => {
    const directory = workshop.project({ "src/a.ts": "a\n", ".env": "SECRET=1\n" });
    const sandboxId = await workshop.on(directory, {
      permissions: [...WRITE_ALL, { pattern: "**/.env", permission: Permission.NONE, priority: 100 }],
    });
    expect(await workshop.run(sandboxId, "ls -A; cat src/a.ts")).toBe("src\na\n");
    expect(await workshop.run(sandboxId, "cat .env")).toContain("No such file or directory");
  });

  test("keeps what it writes out of the directory until it is applied", async () => {
    const directory = workshop.project({ a: "old\n", gone: "x\n", "sub/b": "b\n" });
    const sandboxId = await workshop.on(directory);
    await workshop.run(sandboxId, "echo new > a; rm gone; mkdir made; echo c > made/c; ln -s a link");
    expect(readdirSync(directory).sort()).toEqual(["a", "gone", "sub"]);
    expect(text(directory, "a")).toBe("old\n");

    const rehearsed = await workshop.sandboxes.applyChanges({ sandboxId, dryRun: true });
    expect(rehearsed.outcomes.map(({ change, applied }) => [change?.path, applied])).toEqual([
      ["/a", true],
      ["/gone", true],
      ["/link", true],
      ["/made", true],
      ["/made/c", true],
    ]);
    expect(readdirSync(directory).sort()).toEqual(["a", "gone", "sub"]);

    const { version, outcomes } = await workshop.sandboxes.applyChanges({ sandboxId });
    expect(version).toBe(0n);
    expect(outcomes.every(({ applied, conflict }) => applied && !conflict)).toBe(true);
    expect(readdirSync(directory).sort()).toEqual(["a", "link", "made", "sub"]);
    expect(text(directory, "a") + text(directory, "made/c")).toBe("new\nc\n");
    expect(await workshop.changes(sandboxId)).toEqual([]);
    expect(await workshop.run(sandboxId, "cat a made/c; readlink link; ls")).toBe("new\nc\na\na\nlink\nmade\nsub\n");
  });

  test("applies only named paths, and only what its rules let it write now", async () => {
    const directory = workshop.project({ a: "1\n", b: "1\n", c: "1\n" });
    const sandboxId = await workshop.on(directory);
    await workshop.run(sandboxId, "echo 2 > a; echo 2 > b; echo 2 > c");
    await workshop.sandboxes.applyChanges({ sandboxId, paths: ["/a"] });
    expect([text(directory, "a"), text(directory, "b")]).toEqual(["2\n", "1\n"]);
    await workshop.sandboxes.updatePermissions({
      sandboxId,
      permissions: [...WRITE_ALL, { pattern: "/b", permission: Permission.READ, priority: 1 }],
    });
    const { outcomes } = await workshop.sandboxes.applyChanges({ sandboxId });
    expect(outcomes.map(({ change, applied, reason }) => [change?.path, applied, reason])).toEqual([
      ["/b", false, "level read"],
      ["/c", true, ""],
    ]);
    expect([text(directory, "b"), text(directory, "c")]).toEqual(["1\n", "2\n"]);
    expect(await failureOf(workshop.sandboxes.applyChanges({ sandboxId, paths: ["/a"] }))).toBe("FILE_NOT_FOUND");
  });

  test("tells when it overwrites what somebody else wrote meanwhile", async () => {
    const directory = workshop.project({ a: "1\n", b: "1\n" });
    const sandboxId = await workshop.on(directory);
    await workshop.run(sandboxId, "echo 2 > a; echo 2 > b");
    await aTickOfFileTimes();
    appendFileSync(join(directory, "a"), "more\n");
    const conflicts = async (dryRun: boolean) =>
      (await workshop.sandboxes.applyChanges({ sandboxId, dryRun })).outcomes.map(({ change, conflict }) => [
        change?.path,
        conflict,
      ]);
    const expected = [
      ["/a", true],
      ["/b", false],
    ];
    expect(await conflicts(true)).toEqual(expected);
    expect(await conflicts(false)).toEqual(expected);
    expect(text(directory, "a")).toBe("2\n");
  });

  test("discards what it changed", async () => {
    const directory = workshop.project({ a: "1\n" });
    const sandboxId = await workshop.on(directory);
    await workshop.run(sandboxId, "echo 2 > a; echo new > b");
    const { discarded } = await workshop.sandboxes.discardChanges({ sandboxId });
    expect(discarded.map(({ path }) => path)).toEqual(["/a", "/b"]);
    expect(await workshop.run(sandboxId, "cat a; ls")).toBe("1\na\n");
    expect(text(directory, "a")).toBe("1\n");
  });

  test("writes after each command when it was asked to", async () => {
    const directory = workshop.project({ a: "1\n" });
    const sandboxId = await workshop.on(directory, { sync: SyncMode.ON_EXEC });
    await workshop.run(sandboxId, "echo 2 > a");
    expect(text(directory, "a")).toBe("2\n");
    expect(await workshop.changes(sandboxId)).toEqual([]);
  });

  test("applies what it changed also when it is stopped", async () => {
    const directory = workshop.project({ a: "1\n" });
    const sandboxId = await workshop.on(directory);
    await workshop.run(sandboxId, "echo 2 > a");
    await workshop.sandboxes.stopSandbox({ sandboxId });
    expect(text(directory, "a")).toBe("1\n");
    await workshop.sandboxes.applyChanges({ sandboxId });
    expect(text(directory, "a")).toBe("2\n");
    expect(await workshop.changes(sandboxId)).toEqual([]);
  });

  test("shows what somebody else does in the directory, from the next command on", async () => {
    const directory = workshop.project({
      appended: "1\n",
      replaced: "1\n",
      gone: "1\n",
      "sub/deep": "1\n",
      own: "1\n",
    });
    const sandboxId = await workshop.on(directory);
    const look = "cat appended replaced own sub/deep; ls . sub; cat new sub/new 2>/dev/null; stat -c %s appended";
    expect(await workshop.run(sandboxId, `echo mine > own; ${look}`)).toBe(
      "1\n1\nmine\n1\n.:\nappended\ngone\nown\nreplaced\nsub\n\nsub:\ndeep\n2\n",
    );
    appendFileSync(join(directory, "appended"), "2\n");
    writeFileSync(join(directory, "sub/deep"), "2\n"); // of the same size
    writeFileSync(join(directory, "other"), "2\n");
    renameSync(join(directory, "other"), join(directory, "replaced"));
    rmSync(join(directory, "gone"));
    writeFileSync(join(directory, "own"), "theirs\n");
    writeFileSync(join(directory, "new"), "n\n");
    writeFileSync(join(directory, "sub/new"), "n\n");
    expect(await workshop.run(sandboxId, look)).toBe(
      "1\n2\n2\nmine\n2\n.:\nappended\nnew\nown\nreplaced\nsub\n\nsub:\ndeep\nnew\nn\nn\n4\n",
    );
    renameSync(join(directory, "sub"), join(directory, "moved"));
    expect(await workshop.run(sandboxId, "cat moved/deep; ls sub moved")).toBe(
      "2\nmoved:\ndeep\nnew\nls: cannot access 'sub': No such file or directory\n",
    );
    const { id: sessionId } = await workshop.sandboxes.createSession({ sandboxId });
    rmSync(join(directory, "moved"), { recursive: true });
    const { stdout } = await workshop.sandboxes.sessionExec({ sessionId, command: "ls; cat moved/deep" });
    expect(stdout).toBe("appended\nnew\nown\nreplaced\n");
    writeFileSync(join(directory, "appended"), "all new\n");
    let content = "";
    for await (const { data } of workshop.sandboxes.readFile({ sandboxId, path: "appended" })) {
      content += Buffer.from(data).toString();
    }
    expect(content).toBe("all new\n");
  });

  test("what is applied, or written by others, while commands have it open stays readable to them", async () => {
    const directory = workshop.project({ untouched: "u\n" });
    const sandboxId = await workshop.on(directory);
    const first = await workshop.run(sandboxId, "for n in 1 2 3 4; do echo $n > own$n; done; cat own*");
    expect(first).toBe("1\n2\n3\n4\n");
    await workshop.sandboxes.applyChanges({ sandboxId });
    // Each opens without reading, and the next command looks at the directory again meanwhile.
    const reading = Array.from({ length: 8 }, (_, round) =>
      workshop.run(
        sandboxId,
        `n=$((${round} % 4 + 1)); exec 3<own$n 4<untouched; sleep 0.3; cat <&3 <&4 && cat /dev/fd/3`,
      ),
    );
    for (let round = 0; round < 10; round += 1) {
      await workshop.run(sandboxId, `echo ${(round % 4) + 1} > own${(round % 4) + 1}`);
      await workshop.sandboxes.applyChanges({ sandboxId });
      writeFileSync(join(directory, "other"), "u\n");
      renameSync(join(directory, "other"), join(directory, "untouched"));
    }
    for (const output of await Promise.all(reading)) expect(output).toMatch(/^u\n[1-4]?\n?$/);
  });

  test("never writes through a link that came into the directory", async () => {
    const directory = workshop.project({ "d/f": "1\n" });
    const outside = workshop.project({ f: "theirs\n" });
    const sandboxId = await workshop.on(directory);
    await workshop.run(sandboxId, "echo 2 > d/f");
    rmSync(join(directory, "d"), { recursive: true });
    symlinkSync(outside, join(directory, "d"));
    await workshop.sandboxes.applyChanges({ sandboxId });
    expect(text(outside, "f")).toBe("theirs\n");
  });
});

test("a process stays without whoever spawned it, and another finds it by its tag", async () => {
  const { engine } = workshop;
  await using sandbox = await Sandbox.fromLocal(workshop.project(), { engine, preset: "full-access" });
  const { number } = await sandbox.spawn("echo up; read line; echo got $line; exit 3", { tag: "server", stdin: true });
  const other = await Sandbox.connect(sandbox.id, { engine });
  const found = await other.process("server");
  expect(found.number).toBe(number);
  const output = await found.attach();
  await found.write("this\n");
  let shown = "";
  for await (const event of output) if (event.kind === "stdout") shown += Buffer.from(event.data).toString();
  expect(shown).toBe("up\ngot this\n");
  expect(await found.wait()).toMatchObject({ exitCode: 3 });
  expect((await sandbox.processes()).map(({ info }) => [info.tag, info.state])).toEqual([["server", "ended"]]);
});

describe("several sandboxes on one directory", () => {
  test("see what one of them applies, whether they share the codebase or not", async () => {
    const directory = workshop.project({ "sub/a": "1\n", keep: "k\n" });
    const writer = await workshop.on(directory);
    const { codebaseId } = await workshop.sandboxes.getSandbox({ sandboxId: writer });
    const sameCodebase = (await workshop.sandboxes.createSandbox({ codebaseId, permissions: WRITE_ALL })).id;
    await workshop.sandboxes.startSandbox({ sandboxId: sameCodebase });
    const sameDirectory = await workshop.on(directory);
    const below = await workshop.on(join(directory, "sub"));
    const others = [sameCodebase, sameDirectory, below];
    const look = (): Promise<string[]> =>
      Promise.all(others.map((id) => workshop.run(id, "cat a sub/a 2>/dev/null; test -e new && echo new")));
    expect(await look()).toEqual(["1\n", "1\n", "1\n"]);
    await workshop.run(writer, "echo 2 > sub/a; echo > sub/new; echo > new");
    expect(await look()).toEqual(["1\n", "1\n", "1\n"]);
    await workshop.sandboxes.applyChanges({ sandboxId: writer });
    expect(await look()).toEqual(["2\nnew\n", "2\nnew\n", "2\nnew\n"]);
  });

  test("keep their own version of a file that another one applied, and say so when they apply it", async () => {
    const directory = workshop.project({ a: "1\n" });
    const [first, second] = [await workshop.on(directory), await workshop.on(directory)];
    await workshop.run(first, "echo first > a");
    await workshop.run(second, "echo second > a");
    await aTickOfFileTimes();
    await workshop.sandboxes.applyChanges({ sandboxId: first });
    expect(await workshop.run(second, "cat a")).toBe("second\n");
    const { outcomes } = await workshop.sandboxes.applyChanges({ sandboxId: second });
    expect(outcomes).toMatchObject([{ applied: true, conflict: true }]);
    expect(text(directory, "a")).toBe("second\n");
    expect(await workshop.run(first, "cat a")).toBe("second\n");
  });

  test("apply at the same time without getting in one another's way", async () => {
    const directory = workshop.project();
    const ids = await Promise.all(Array.from({ length: 4 }, () => workshop.on(directory)));
    await Promise.all(ids.map((id, n) => workshop.run(id, `for i in 1 2 3 4 5; do echo ${n} > f${n}-$i; done`)));
    await Promise.all(ids.map((sandboxId) => workshop.sandboxes.applyChanges({ sandboxId })));
    expect(readdirSync(directory)).toHaveLength(20);
  });
});

describe("a directory as a codebase", () => {
  test("is found, listed, and forgotten without harm", async () => {
    const directory = workshop.project({ a: "1\n" });
    const id = await workshop.engine.openDirectory(directory, { name: "mine" });
    expect(await workshop.codebases.getCodebase({ codebaseId: id })).toMatchObject({ id, name: "mine", version: 0n });
    const { codebases } = await workshop.codebases.listCodebases({ pageSize: 1000 });
    expect(codebases.map((each) => each.id)).toContain(id);
    await workshop.codebases.deleteCodebase({ codebaseId: id });
    expect(await failureOf(workshop.codebases.getCodebase({ codebaseId: id }))).toBe("CODEBASE_NOT_FOUND");
    expect(text(directory, "a")).toBe("1\n");
  });

  test("is listed page by page together with stored ones", async () => {
    const made: string[] = [];
    for (let n = 0; n < 3; n++) {
      made.push((await workshop.codebases.createCodebase({ name: `stored ${n}`, ownerId: "local" })).id);
      made.push(await workshop.engine.openDirectory(workshop.project()));
    }
    const found: string[] = [];
    for (let pageToken = ""; ; ) {
      const page = await workshop.codebases.listCodebases({ ownerId: "local", pageSize: 2, pageToken });
      expect(page.codebases.length).toBeLessThanOrEqual(2);
      found.push(...page.codebases.map(({ id }) => id));
      pageToken = page.nextPageToken;
      if (pageToken === "") break;
    }
    expect(found.filter((id) => made.includes(id)).sort()).toEqual([...made].sort());
    expect(new Set(found).size).toBe(found.length);
  });

  test("can be read, but nothing in it is followed", async () => {
    const directory = workshop.project({ "src/a.ts": "content\n", "src/b/c": "c" });
    const outside = workshop.project({ secret: "theirs" });
    symlinkSync(outside, join(directory, "out"));
    symlinkSync(join(outside, "secret"), join(directory, "file"));
    const codebaseId = await workshop.engine.openDirectory(directory);
    const files = async (path: string, recursive: boolean, pageSize = 0) =>
      (await workshop.codebases.listFiles({ codebaseId, path, recursive, pageSize })).files.map((file) => file.path);
    expect(await files("", false)).toEqual(["file", "out", "src"]);
    expect(await files("", true)).toEqual(["file", "out", "src", "src/a.ts", "src/b", "src/b/c"]);
    expect(await files("src", true, 2)).toEqual(["src/a.ts", "src/b"]);
    expect(await failureOf(files("out", true))).toBe("FILE_WRONG_KIND");
    expect(await failureOf(files("nothing", true))).toBe("FILE_NOT_FOUND");
    const content = async (filePath: string): Promise<string> => {
      let found = "";
      for await (const { data } of workshop.codebases.downloadFile({ codebaseId, filePath })) {
        found += Buffer.from(data).toString();
      }
      return found;
    };
    expect(await content("src/a.ts")).toBe("content\n");
    for (const path of ["file", "out/secret", "nothing", "src"]) {
      expect(await failureOf(content(path)), path).toBe("FILE_NOT_FOUND");
    }
    let archive = 0;
    for await (const { data } of workshop.codebases.downloadArchive({ codebaseId })) archive += data.length;
    expect(archive % 512).toBe(0);
    expect(archive).toBeGreaterThan(0);
  });

  test("has no versions and takes no uploads", async () => {
    const codebaseId = await workshop.engine.openDirectory(workshop.project({ a: "1" }));
    const { codebases, sandboxes } = workshop;
    const refused = [
      codebases.listVersions({ codebaseId }),
      codebases.getVersion({ codebaseId, version: 1n }),
      codebases.rollback({ codebaseId, version: 1n }),
      codebases.deleteFile({ codebaseId, filePath: "a" }),
      codebases.renameFile({ codebaseId, fromPath: "a", toPath: "b" }),
      codebases.compareManifest({ codebaseId, entries: [] }),
      codebases.listFiles({ codebaseId, version: 1n }),
      sandboxes.createSandbox({ codebaseId, permissions: WRITE_ALL, codebaseVersion: 1n }),
    ];
    for (const call of refused) expect(await failureOf(call)).toBe("CODEBASE_IS_LOCAL");
  });

  test("must be there, be a directory, and hold none of our own files", async () => {
    const directory = workshop.project({ file: "x" });
    await expect(workshop.engine.openDirectory(join(directory, "nothing"))).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
    });
    await expect(workshop.engine.openDirectory(join(directory, "file"))).rejects.toMatchObject({
      code: "FILE_WRONG_KIND",
    });
    for (const ours of ["/", tmpdir()]) {
      await expect(workshop.engine.openDirectory(ours)).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    }
  });

  test("that goes away is told as such", async () => {
    const directory = mkdtempSync(join(dirname(workshop.project()), "short-"));
    const codebaseId = await workshop.engine.openDirectory(directory);
    const { id: sandboxId } = await workshop.sandboxes.createSandbox({ codebaseId, permissions: WRITE_ALL });
    rmSync(directory, { recursive: true });
    expect(await failureOf(workshop.sandboxes.startSandbox({ sandboxId }))).toBe("FILE_NOT_FOUND");
  });
});

describe("the engine", () => {
  test("gives a command's whole output, as far as the isolation keeps it", async () => {
    const sandboxId = await workshop.on(workshop.project());
    const { stdout } = await workshop.sandboxes.exec({ sandboxId, command: "head -c 9000000 /dev/zero | tr '\\0' x" });
    expect(stdout.length).toBe(9_000_000);
  });

  test("lets a command ask for any time unless a maximum was told, and then refuses more", async () => {
    const directory = workshop.project({ a: "a" });
    const options = { timeoutMs: 24 * 3_600_000 };
    {
      await using sandbox = await Sandbox.fromLocal(directory, { preset: "full-access" });
      expect(await sandbox.run("echo yes", options)).toMatchObject({ stdout: "yes\n" });
      await using session = await sandbox.session();
      expect(await session.exec("echo yes", options)).toMatchObject({ stdout: "yes\n" });
    }
    await using engine = await EmbeddedEngine.open({ maxTimeoutMs: 90_000 });
    await using sandbox = await Sandbox.fromLocal(directory, { engine, preset: "full-access" });
    await using session = await sandbox.session();
    const refused = {
      name: "InvalidConfigurationError",
      message: "timeout is at most 90 s",
      hint: "the engine's maxTimeoutMs raises that",
    };
    await expect(sandbox.run("touch ran", { timeoutMs: 90_001 })).rejects.toMatchObject(refused);
    await expect(session.exec("touch ran", { timeoutMs: 90_001 })).rejects.toMatchObject(refused);
    expect(await sandbox.run("ls")).toMatchObject({ stdout: "a\n" });
  });

  test("keeps stored codebases beside directories", async () => {
    const { id: codebaseId } = await workshop.codebases.createCodebase({ name: "stored", ownerId: "me" });
    const { id: sandboxId } = await workshop.sandboxes.createSandbox({ codebaseId, permissions: WRITE_ALL });
    await workshop.sandboxes.startSandbox({ sandboxId });
    await workshop.run(sandboxId, "echo 1 > a");
    const { files } = await workshop.codebases.listFiles({ codebaseId });
    expect(files.map(({ path }) => path)).toEqual(["a"]);
    const { versions } = await workshop.codebases.listVersions({ codebaseId });
    expect(versions).toHaveLength(1);
  });

  test("writes down what happens, and tells those who listen", async () => {
    const directory = workshop.project({ a: "1\n" });
    const sandboxId = await workshop.on(directory);
    const stop = new AbortController();
    const heard: string[] = [];
    const listening = (async () => {
      for await (const { type } of workshop.events.watchEvents(
        { sandboxId, afterSequence: 0n },
        { signal: stop.signal },
      )) {
        heard.push(type);
        if (type === "sandbox_destroyed") return;
      }
    })();
    await workshop.run(sandboxId, "echo 2 > a");
    await workshop.sandboxes.applyChanges({ sandboxId });
    await workshop.sandboxes.destroySandbox({ sandboxId });
    await listening;
    const { events } = await workshop.events.listEvents({ sandboxId });
    expect(events.map(({ type }) => type)).toEqual(heard);
    expect(heard).toEqual([
      "sandbox_created",
      "sandbox_started",
      "command_executed",
      "changes_applied",
      "sandbox_destroyed",
    ]);
    expect(events[3]?.data).toMatchObject({ version: 0, changes: 1, refused: 0, conflicts: 0 });
  });

  test("leaves nothing when it is closed, and takes no more calls", async () => {
    const stateDirectory = workshop.project();
    const other = await Workshop.open({ stateDirectory });
    const directory = other.project({ a: "1\n" });
    const sandboxId = await other.on(directory);
    await other.run(sandboxId, "echo 2 > a");
    expect(readdirSync(stateDirectory)).toHaveLength(1);
    await other.engine.close();
    expect(readdirSync(stateDirectory)).toEqual([]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(sandboxId);
    await expect(other.run(sandboxId, "true")).rejects.toThrow("the engine is closed");
    expect(text(directory, "a")).toBe("1\n");
    await other[Symbol.asyncDispose]();
    expect(existsSync(directory)).toBe(false);
  });
});
