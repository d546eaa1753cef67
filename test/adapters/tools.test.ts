import { EmbeddedEngine, Sandbox, SandboxNotRunningError } from "agentfense";
import { MockEngine } from "agentfense/testing";
import { type SandboxTool, sandboxTools, type ToolName, type ToolOptions, type ToolSandbox } from "agentfense/tools";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stayOffline } from "./support/offline.ts";
import { openProject } from "./support/project.ts";

let engine: EmbeddedEngine;
beforeAll(async () => {
  engine = await EmbeddedEngine.open();
});
afterAll(() => engine?.[Symbol.asyncDispose]());
stayOffline();

type Use = (tool: ToolName, input?: unknown) => Promise<string>;

/** Calls tools by name; what could not be done begins with "error: ". */
function userOf(sandbox: ToolSandbox, options?: ToolOptions): Use {
  const tools = new Map(sandboxTools(sandbox, options).map((tool) => [tool.name, tool]));
  return async (name, input) => {
    const { text, isError } = await (tools.get(name) as SandboxTool).execute(input);
    return isError ? `error: ${text}` : text;
  };
}

describe("the declarations", () => {
  test("are plain JSON: a name, a description and a schema each", async () => {
    const sandbox = await openProject(engine);
    const tools = sandboxTools(sandbox);
    expect(tools.map(({ name, readOnly }) => `${name} ${readOnly ? "looks" : "acts"}`)).toEqual([
      "shell acts",
      "read_file looks",
      "write_file acts",
      "edit_file acts",
      "list_files looks",
      "search looks",
      "changes looks",
    ]);
    for (const { description, inputSchema } of tools) {
      expect(description).toMatch(/^[A-Z].+\.$/s);
      expect(JSON.parse(JSON.stringify(inputSchema))).toEqual(inputSchema);
    }
    expect(tools.find(({ name }) => name === "read_file")?.inputSchema).toEqual({
      type: "object",
      properties: {
        path: { type: "string", minLength: 1, description: "Relative to /workspace" },
        offset: {
          type: "integer",
          minimum: 1,
          maximum: 1_000_000_000,
          description: "The first line, counted from 1; default 1",
        },
        limit: { type: "integer", minimum: 1, maximum: 1_000_000, description: "How many lines; default 2000" },
      },
      required: ["path"],
      additionalProperties: false,
    });
  });

  test("are all known by name", async () => {
    const sandbox = await openProject(engine);
    expect(() => sandboxTools(sandbox, { only: ["toString" as ToolName] })).toThrow('there is no tool "toString"');
  });

  test("refuse what does not fit, name what is wrong, and take null for absent", async () => {
    const use = userOf(await openProject(engine));
    expect(await use("read_file", { path: "README.md", offset: null, limit: null })).toBe("# Greeter\n");
    expect(await use("read_file", {})).toBe(
      "error: the input does not fit: path: Invalid input: expected string, received undefined",
    );
    expect(await use("read_file", { path: "README.md", offset: 0 })).toMatch(/^error: .*offset: Too small/);
    expect(await use("shell", { command: "true", timeout: 5 })).toMatch(/^error: .*Unrecognized key: "timeout"/);
    expect(await use("shell", "ls")).toMatch(/^error: the input does not fit: Invalid input: expected object/);
    expect(await use("list_files")).toBe("README.md\nsrc/");
  });
});

describe("shell", () => {
  test("keeps the two ends of what is too long, and always says how it ended", async () => {
    const use = userOf(await openProject(engine), { maxOutput: 12 });
    expect(await use("shell", { command: "seq 100; exit 4" })).toBe(
      "1\n2\n3\n\n[279 characters left out]\n99\n100\n[exit code 4]",
    );
  });

  test("halves no character", async () => {
    const use = userOf(await openProject(engine), { maxOutput: 3 });
    expect(await use("shell", { command: "printf '😀😀😀😀'" })).toBe("😀\n[4 characters left out]\n😀");
  });

  test("says when there is nothing to say", async () => {
    const use = userOf(await openProject(engine));
    expect(await use("shell", { command: "true" })).toBe("(no output)");
    expect(await use("shell", { command: "pwd", workdir: "src" })).toBe("/workspace/src");
    expect(await use("shell", { command: "pwd", workdir: "nowhere" })).toMatch(/^error: /);
  });
});

describe("read_file", () => {
  test("reads on where it stopped, without losing or repeating a line", async () => {
    const sandbox = await openProject(engine);
    const lines = Array.from({ length: 500 }, (_, at) => `line ${at + 1}\n`);
    await sandbox.files.writeFile("src/long", lines.join(""));
    const use = userOf(sandbox, { maxOutput: 1000 });
    let read = "";
    for (let offset: number | undefined = 1; offset !== undefined; ) {
      const text = await use("read_file", { path: "src/long", offset });
      const [, kept = text, next] = /^(.*)\[more lines: read on with offset (\d+)\]$/s.exec(text) ?? [];
      expect(kept.length).toBeLessThanOrEqual(1000);
      read += kept;
      offset = next === undefined ? undefined : Number(next);
    }
    expect(read).toBe(lines.join(""));
  });

  test("cuts a line that is too long by itself, and fetches no more of it", async () => {
    const sandbox = await openProject(engine);
    await sandbox.run("head -c 50000000 /dev/zero | tr '\\0' x > src/wide", { check: true });
    const use = userOf(sandbox, { maxOutput: 10 });
    expect(await use("read_file", { path: "src/wide" })).toBe("xxxxxxxxxx\n[line 1 is cut: it is too long]");
  });

  test("tells of empty files, ends, directories, binaries", async () => {
    const sandbox = await openProject(engine);
    await sandbox.files.writeFile("src/empty", "");
    await sandbox.files.writeFile("src/binary", Uint8Array.of(1, 0, 2));
    await sandbox.files.writeFile("src/unended", "\uFEFFa\nb");
    const use = userOf(sandbox);
    expect(await use("read_file", { path: "src/empty" })).toBe("(empty file)");
    expect(await use("read_file", { path: "src/binary" })).toBe("error: this is no text file");
    expect(await use("read_file", { path: "src/unended" })).toBe("\uFEFFa\nb");
    expect(await use("read_file", { path: "src/unended", offset: 2 })).toBe("b");
    expect(await use("read_file", { path: "src/unended", offset: 3 })).toBe("error: src/unended has only 2 lines");
    expect(await use("read_file", { path: "src" })).toMatch(/^error: /);
    expect(await use("read_file", { path: "/etc/passwd" })).toMatch(/^error: .*does not exist/);
    expect(await use("read_file", { path: "../etc/passwd" })).toMatch(/^error: /);
  });
});

describe("edit_file", () => {
  test("takes the texts as they are, and keeps the rest and the mode", async () => {
    const sandbox = await openProject(engine);
    await sandbox.files.writeFile("src/run", "\uFEFFa\r\n$1 a\r\n", { mode: 0o755 });
    const use = userOf(sandbox);
    const edit = { path: "src/run", old_text: "a", new_text: "$&$1", replace_all: true };
    expect(await use("edit_file", edit)).toBe("edited src/run in 2 places");
    expect(await sandbox.files.readFile("src/run", "utf8")).toBe("\uFEFF$&$1\r\n$1 $&$1\r\n");
    expect((await sandbox.files.stat("src/run")).mode & 0o777).toBe(0o755);
  });

  test("loses none of several edits of one file at the same time", async () => {
    const sandbox = await openProject(engine);
    const words = Array.from({ length: 20 }, (_, at) => `<${at}>`);
    await sandbox.files.writeFile("src/words", words.join(" "));
    const use = userOf(sandbox);
    await Promise.all(words.map((word) => use("edit_file", { path: "src/words", old_text: word, new_text: "done" })));
    expect(await sandbox.files.readFile("src/words", "utf8")).toBe(words.map(() => "done").join(" "));
  });

  test("leaves alone what is no UTF-8", async () => {
    const sandbox = await openProject(engine);
    await sandbox.files.writeFile("src/latin1", Uint8Array.of(0x61, 0xe9));
    const use = userOf(sandbox);
    expect(await use("edit_file", { path: "src/latin1", old_text: "a", new_text: "b" })).toBe(
      "error: src/latin1 is no UTF-8 text",
    );
    expect(await sandbox.files.readFile("src/latin1")).toEqual(Uint8Array.of(0x61, 0xe9));
  });
});

describe("search", () => {
  const HOSTILE = ["$(touch src/owned)", "'; touch src/owned; '", "`touch src/owned`", "-f/etc/passwd", "--help", "-e"];

  test.each(HOSTILE)("%s is a pattern and nothing else", async (pattern) => {
    const sandbox = await openProject(engine, { "src/text": `before ${pattern} after\n` });
    const use = userOf(sandbox);
    await use("search", { pattern });
    await use("search", { pattern: "x", path: pattern });
    expect(await sandbox.changes().toArray()).toEqual([]);
  });

  test("finds by extended expressions, in a file or below a directory, as many as are wanted", async () => {
    const files = { "a/one.txt": "x1\ny2\nx3\n", "a/b/two.txt": "x4\n", "z.txt": "x5\n", ".git/config": "x6\n" };
    const use = userOf(await openProject(engine, files));
    const found = (await use("search", { pattern: "^x[0-9]+$" })).split("\n").toSorted();
    expect(found).toEqual(["a/b/two.txt:1:x4", "a/one.txt:1:x1", "a/one.txt:3:x3", "z.txt:1:x5"]);
    expect(await use("search", { pattern: "x|y", path: "a/one.txt", max_results: 2 })).toBe(
      "a/one.txt:1:x1\na/one.txt:2:y2\n[1 more matches]",
    );
    expect(await use("search", { pattern: "nothing" })).toBe("(no matches)");
    expect(await use("search", { pattern: "x", path: "nowhere" })).toBe('error: "nowhere": it does not exist');
    expect(await use("search", { pattern: "(" })).toMatch(/^error: grep: /);
  });

  test("looks for plain text by the file API where there is no grep", async () => {
    const files = { "src/a.txt": "one (two)\n", "src/b.bin": Uint8Array.of(0x6f, 0x6e, 0x65, 0), ".env": "one\n" };
    await using sandbox = await Sandbox.fromLocal(".", { engine: MockEngine.withFiles(files) });
    const use = userOf(sandbox);
    const remark = "[there is no grep in the sandbox: this was searched for as plain text]";
    expect(await use("search", { pattern: "one (" })).toBe(`src/a.txt:1:one (two)\n${remark}`);
    expect(await use("search", { pattern: "one .t" })).toBe(`(no matches)\n${remark}`);
    expect(await use("search", { pattern: "two", path: "src/a.txt" })).toBe(`src/a.txt:1:one (two)\n${remark}`);
  });
});

describe("list_files", () => {
  test("marks directories and links, and cuts a long list between entries", async () => {
    const sandbox = await openProject(engine);
    await sandbox.run("ln -s greet.sh src/link; mkdir src/dir", { check: true });
    const use = userOf(sandbox);
    expect(await use("list_files", { path: "/workspace/src" })).toBe("src/dir/\nsrc/greet.sh\nsrc/link -> greet.sh");
    expect(await use("list_files", { path: "src/dir" })).toBe("(nothing)");
    const short = userOf(sandbox, { maxOutput: 10 });
    expect(await short("list_files", { path: "src" })).toBe("src/dir/\n[2 more left out: list a directory below]");
  });
});

describe("what is thrown", () => {
  test("a sandbox that does not run, and the reason of a signal", async () => {
    const sandbox = await openProject(engine);
    const [shell] = sandboxTools(sandbox, { only: ["shell"] });
    const reason = new Error("enough");
    const signal = AbortSignal.abort(reason);
    await expect(shell!.execute({ command: "true" }, { signal })).rejects.toBe(reason);
    await sandbox.stop();
    await expect(shell!.execute({ command: "true" })).rejects.toBeInstanceOf(SandboxNotRunningError);
  });

  test("what the approval throws; and only true approves", async () => {
    const sandbox = await openProject(engine);
    const input = { command: "echo > src/owned" };
    const failing = userOf(sandbox, { approve: () => Promise.reject(new Error("nobody is there")) });
    await expect(failing("shell", input)).rejects.toThrow("nobody is there");
    const careless = userOf(sandbox, { approve: () => "no" as unknown as boolean });
    expect(await careless("shell", input)).toMatch(/^error: this call was not approved/);
    expect(await sandbox.changes().toArray()).toEqual([]);
  });
});
