import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { registryError } from "../../../../test/support/scripted-server.ts";
import { scratch } from "../run-cli.ts";
import { scriptedServer } from "./scripted-server.ts";

describe("files", () => {
  test("a download goes to stdout, or to a file that is there when all of it arrived", async () => {
    const server = await scriptedServer({
      codebases: {
        async *downloadFile({ filePath, version }) {
          yield { data: Buffer.from(`${filePath} `) };
          if (filePath === "broken") throw registryError("INTERNAL", "the disk is gone");
          yield { data: Buffer.from(`at ${version}`) };
        },
      },
    });
    const directory = await scratch();
    expect((await server.run(["codebase", "download", "cb_1", "a.txt"])).stdout).toBe("a.txt at 0");
    const output = join(directory, "out");
    await server.run(["codebase", "download", "cb_1", "a.txt", "--version", "3", "-o", output]);
    expect(await readFile(output, "utf8")).toBe("a.txt at 3");
    const broken = await server.run(["codebase", "download", "cb_1", "broken", "-o", output]);
    expect(broken).toMatchObject({ code: 1, stderr: "agentfense: the disk is gone\n" });
    expect(await readFile(output, "utf8")).toBe("a.txt at 3");
    expect(await readdir(directory)).toEqual(["out"]);
  });

  test("sandbox write takes a file or stdin", async () => {
    const written: unknown[] = [];
    const server = await scriptedServer({
      sandboxes: {
        async writeFile(chunks) {
          let content = "";
          let about: unknown;
          for await (const { content: part } of chunks) {
            if (part.case === "metadata") about = [part.value.path, part.value.mode.toString(8), part.value.append];
            else if (part.case === "data") content += Buffer.from(part.value).toString();
          }
          written.push([about, content]);
          return { path: "/a", size: BigInt(content.length) };
        },
      },
    });
    const file = join(await scratch(), "file");
    await writeFile(file, "x".repeat(200_000));
    expect((await server.run(["sandbox", "write", "sb_1", "a", file])).stdout).toBe("/a  195.3 KiB\n");
    await server.run(["sandbox", "write", "--append", "--mode", "600", "sb_1", "a"], { input: "piped" });
    expect(written).toEqual([
      [["a", "0", false], "x".repeat(200_000)],
      [["a", "600", true], "piped"],
    ]);
  });

  test("sandbox ls shows the level of each path", async () => {
    const modifiedAt = { seconds: 1_770_000_000n };
    const server = await scriptedServer({
      sandboxes: {
        listDirectory: ({ path }) => ({
          files: [
            { path: `${path}src`, isDir: true, mode: 0o755, permission: 4, modifiedAt },
            { path: `${path}a\nb`, size: 3n, mode: 0o644, permission: 3, symlinkTarget: "x", modifiedAt },
          ],
        }),
      },
    });
    expect((await server.run(["sandbox", "ls", "sb_1"])).stdout).toBe(
      [
        "MODE  LEVEL  SIZE  MODIFIED              PATH",
        "0755  write     -  2026-02-02T02:40:00Z  /src/",
        "0644  read    3 B  2026-02-02T02:40:00Z  /a\\nb -> x",
        "",
      ].join("\n"),
    );
  });

  test("sandbox apply marks what was left out and exits 1", async () => {
    const server = await scriptedServer({
      sandboxes: {
        applyChanges: ({ paths, dryRun, holdExecutables }) => ({
          version: dryRun ? 0n : 4n,
          outcomes: [
            { change: { kind: 2, path: "/a", type: 1, sensitive: true }, applied: !holdExecutables, sensitive: true },
            { change: { kind: 4, path: `/${paths[0]}`, oldPath: "/b", type: 1 }, applied: false, reason: "read only" },
          ],
        }),
      },
    });
    expect(await server.run(["sandbox", "apply", "sb_1", "c"])).toEqual({
      code: 1,
      stderr: "",
      stdout:
        "M! /a  (a machine may run or trust this unasked)\nR  /b -> /c  (left out; read only)\n1 change applied, 1 left out, version 4\n",
    });
    expect((await server.run(["sandbox", "apply", "--hold-executables", "sb_1", "c"])).stdout).toContain(
      "M! /a  (left out; ",
    );
  });
});
