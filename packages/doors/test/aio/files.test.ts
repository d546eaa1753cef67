import type { Sandbox } from "agentfense";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../../../test/support/eventually.ts";
import { DoorClient } from "./door-client.ts";
import { DoorServer } from "./door-server.ts";

let server: DoorServer;
let sandbox: Sandbox;
let aio: DoorClient;
beforeAll(async () => {
  server = await DoorServer.open();
  sandbox = await server.sandbox(
    {
      "a.txt": "one\ntwo\nthree\n",
      ".env": "SECRET=1\n",
      "secret/key.pem": "PRIVATE\n",
      "view.txt": "only its name\n",
      "fixed.txt": "fixed\n",
      "src/main.py": "def main():\n    return 'needle'\n",
      "src/deep/util.py": "# needle here\nx = 1\n# NEEDLE again\n",
      "src/deep/data.json": "{}\n",
    },
    [
      { pattern: "**", permission: "write" },
      { pattern: "/.env", permission: "none" },
      { pattern: "/secret/**", permission: "none" },
      { pattern: "/view.txt", permission: "view" },
      { pattern: "/fixed.txt", permission: "read" },
    ],
  );
  aio = new DoorClient(server.url(sandbox.id));
});
afterAll(async () => await server?.[Symbol.asyncDispose]());

test("files are read and written, whole and by lines, in text and base64", async () => {
  expect((await aio.post("file/read", { file: "/workspace/a.txt" })).data).toEqual({
    content: "one\ntwo\nthree\n",
    file: "/workspace/a.txt",
  });
  const lines = await aio.post("file/read", { file: "a.txt", start_line: 1, end_line: 2, sudo: true });
  expect(lines.data.content).toBe("two");
  const content = Buffer.from([0, 255, 10]).toString("base64");
  const written = await aio.post("file/write", { file: "/workspace/new/deep/x.bin", content, encoding: "base64" });
  expect(written).toMatchObject({ success: true, data: { bytes_written: 3 } });
  expect([...(await sandbox.files.readFile("new/deep/x.bin"))]).toEqual([0, 255, 10]);
  await aio.post("file/write", { file: "log.txt", content: "1", trailing_newline: true });
  await aio.post("file/write", { file: "log.txt", content: "2", append: true, leading_newline: true });
  expect(await sandbox.files.readFile("log.txt", "utf8")).toBe("1\n\n2");
  expect((await aio.post("file/replace", { file: "log.txt", old_str: "\n", new_str: "-" })).data.replaced_count).toBe(
    2,
  );
  expect(await sandbox.files.readFile("log.txt", "utf8")).toBe("1--2");
  const wrong = await aio.post("file/write", { file: "b64", content: "a*b", encoding: "base64" });
  expect(wrong).toMatchObject({ status: 200, success: false, data: { error_type: "decode_error" } });
});

test.each([
  ["hidden", ".env", "not_found", "ENOENT", null],
  ["below a hidden directory", "/workspace/secret/key.pem", "not_found", "ENOENT", null],
  ["not there", "nothing.txt", "not_found", "ENOENT", null],
  ["only to be looked at", "view.txt", "permission_denied", "EACCES", expect.stringContaining("view.txt is view")],
  ["a directory", "src", "invalid_target", "EISDIR", null],
  ["below a file", "a.txt/b", "invalid_target", "ENOTDIR", null],
  ["leading up", "../etc/passwd", "invalid_path", "EINVAL", expect.any(String)],
  ["outside of the workspace", "/etc/passwd", "invalid_path", "EINVAL", expect.any(String)],
  ["of AIO's own home", "/home/gem/a.txt", "invalid_path", "EINVAL", expect.any(String)],
])("a file that is %s cannot be read, with sudo or without", async (_, file, type, errno, hint) => {
  for (const sudo of [false, true]) {
    const answer = await aio.post("file/read", { file, sudo });
    expect(answer).toMatchObject({ status: 200, success: false, hint });
    expect(answer.data).toMatchObject({
      path: expect.any(String),
      operation: "read",
      error_type: type,
      errno_name: errno,
    });
  }
});

test("a file that must not be changed is not, with sudo or without", async () => {
  for (const call of [
    () => aio.post("file/write", { file: "fixed.txt", content: "x", sudo: true }),
    () => aio.post("file/replace", { file: "fixed.txt", old_str: "fixed", new_str: "x", sudo: true }),
    () => aio.post("file/str_replace_editor", { command: "create", path: "fixed.txt", file_text: "x" }),
  ]) {
    const answer = await call();
    expect(answer).toMatchObject({ status: 200, success: false, hint: expect.stringContaining("fixed.txt is read") });
    expect(answer.data).toMatchObject({ error_type: "permission_denied", errno_name: "EACCES" });
  }
  expect(await sandbox.files.readFile("fixed.txt", "utf8")).toBe("fixed\n");
});

test("no call tells of what is hidden", async () => {
  const answers = await Promise.all([
    aio.post("file/list", { path: "/workspace", recursive: true, include_permissions: true }),
    aio.post("file/find", { path: "/workspace", glob: "**" }),
    aio.post("file/glob", { path: "/workspace", pattern: "**", include_hidden: true, files_only: false }),
    aio.post("file/grep", { path: "/workspace", pattern: "SECRET|PRIVATE|only its name" }),
    aio.post("file/search", { file: ".env", regex: "SECRET" }),
    aio.post("file/str_replace_editor", { command: "view", path: "/workspace" }),
    aio.post("file/str_replace_editor", { command: "view", path: "/workspace/.env" }),
    aio.post("file/write", { file: "secret/other.txt", content: "x" }),
    aio.post("bash/exec", { command: "cat .env secret/key.pem view.txt; ls -a; true" }),
    aio.post("shell/exec", { command: "cat .env secret/key.pem; ls -a", id: "look" }),
    aio.post("code/execute", {
      language: "python",
      code: "import os; print(os.listdir('.')); print(open('.env').read())",
    }),
    aio.post("jupyter/execute", { code: "open('secret/key.pem').read()" }),
  ]);
  for (const { hint, data } of answers) {
    const told = JSON.stringify([hint, data?.files, data?.matches, data?.stdout, data?.output, data?.outputs]);
    expect(told).not.toMatch(/SECRET=1|PRIVATE|key\.pem"|only its name|rule/);
  }
  const [list, find] = answers;
  expect(list!.data.files.map(({ path }: { path: string }) => path)).not.toContain("/workspace/.env");
  expect(find!.data.files).toContain("/workspace/view.txt");
  const download = await aio.raw("v1/file/download?path=/workspace/.env");
  expect(download.status).toBe(404);
  expect(await download.text()).not.toContain("rule");
});

test("listings have what was asked for, in the order that was asked for", async () => {
  const { data } = await aio.post("file/list", {
    path: "src",
    recursive: true,
    sort_by: "name",
    include_permissions: true,
  });
  expect(data.files.map(({ name, is_directory }: never) => [name, is_directory])).toEqual([
    ["data.json", false],
    ["deep", true],
    ["main.py", false],
    ["util.py", false],
  ]);
  expect(data).toMatchObject({ total_count: 4, directory_count: 1, file_count: 3 });
  expect(data.files[2]).toMatchObject({
    path: "/workspace/src/main.py",
    size: 32,
    extension: ".py",
    permissions: "644",
  });
  const shallow = await aio.post("file/list", { path: "src", recursive: true, max_depth: 1, file_types: ["py"] });
  expect(shallow.data.files.map(({ name }: never) => name)).toEqual(["deep", "main.py"]);
  const found = await aio.post("file/find", { path: "/workspace/src", glob: "*.py" });
  expect(found.data.files).toEqual(["/workspace/src/deep/util.py", "/workspace/src/main.py"]);
  const glob = await aio.post("file/glob", {
    path: "/workspace",
    pattern: "src/**/*.[pj]*",
    exclude: "*.json",
    max_results: 1,
  });
  expect(glob.data).toMatchObject({ total_count: 2, truncated: true, files: [{ name: "util.py" }] });
});

test("grep finds lines with what is around them, and search those of one file", async () => {
  await sandbox.run("mkfifo src/pipe.py", { check: true });
  const { data } = await aio.post("file/grep", {
    path: "/workspace",
    pattern: "need(le)",
    case_insensitive: true,
    context_after: 1,
    include: "*.py",
  });
  expect(data.matches).toEqual([
    match("src/deep/util.py", 1, "# needle here", ["x = 1"]),
    match("src/deep/util.py", 3, "# NEEDLE again", []),
    match("src/main.py", 2, "    return 'needle'", []),
  ]);
  expect(data).toMatchObject({ match_count: 3, files_matched: 2, files_searched: 3, truncated: false });
  const page = await aio.post("file/grep", {
    path: "src",
    pattern: "needle",
    fixed_strings: true,
    offset: 1,
    max_results: 1,
  });
  expect(page.data).toMatchObject({ match_count: 1, truncated: false });
  const search = await aio.post("file/search", { file: "a.txt", regex: "^t(?=w|h)" });
  expect(search.data).toEqual({ file: "a.txt", matches: ["two", "three"], line_numbers: [2, 3] });
  expect((await aio.post("file/search", { file: "a.txt", regex: "nothing" })).data.matches).toEqual([]);
  expect(await aio.post("file/search", { file: "a.txt", regex: "(" })).toMatchObject({ success: false });
});

function match(file: string, line: number, content: string, after: readonly string[]): object {
  const path = `/workspace/${file}`;
  return { file: path, line_number: line, line_content: content, context_before: null, context_after: after };
}

test("a pattern that is made to take long takes the sandbox's time, and the server goes on", async () => {
  await sandbox.files.writeFile("slow.txt", `${"a".repeat(5000)}b\n`);
  const [slow, other] = await Promise.all([
    aio.post("file/search", { file: "slow.txt", regex: "^(a+)+$" }),
    aio.post("file/read", { file: "a.txt" }),
  ]);
  expect(other.success).toBe(true);
  expect(slow.status).toBe(200);
  const names = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`g/${"a".repeat(200)}${n}`, "x"]));
  for (const [path, content] of Object.entries(names)) await aio.post("file/write", { file: path, content });
  const glob = await aio.post("file/glob", { path: "/workspace", pattern: `**/${"*a".repeat(100)}*b` });
  expect(glob.data).toMatchObject({ files: [], total_count: 0 });
});

test("the editor creates, shows, replaces, inserts and takes back", async () => {
  const edit = (command: string, rest: object = {}) =>
    aio.post("file/str_replace_editor", { command, path: "/workspace/e.txt", ...rest });
  expect((await edit("create", { file_text: "a\nb\na\n" })).data).toMatchObject({
    prev_exist: false,
    old_content: null,
  });
  expect((await edit("view", { view_range: [2, 3] })).data.output).toBe("     2\tb\n     3\ta");
  expect(await edit("str_replace", { old_str: "a", new_str: "c" })).toMatchObject({ success: false });
  expect((await edit("str_replace", { old_str: "a", new_str: "c", replace_mode: "LAST" })).data.new_content).toBe(
    "a\nb\nc\n",
  );
  expect((await edit("insert", { insert_line: 1, new_str: "x" })).data.new_content).toBe("a\nx\nb\nc\n");
  expect((await edit("undo_edit")).data.new_content).toBe("a\nb\nc\n");
  expect((await edit("undo_edit")).data.new_content).toBe("a\nb\na\n");
  expect((await edit("undo_edit")).success).toBe(true);
  expect(await edit("view")).toMatchObject({ success: false, data: { error_type: "not_found" } });
  expect((await edit("undo_edit")).success).toBe(false);
});

test("files are uploaded and downloaded as bytes", async () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => at % 251);
  const form = new FormData();
  form.set("file", new File([bytes], "up.bin"));
  form.set("path", "/workspace/up/up.bin");
  const response = await aio.raw("v1/file/upload", { method: "POST", body: form });
  expect(await response.json()).toMatchObject({
    success: true,
    data: { file_path: "/workspace/up/up.bin", file_size: 300_000, success: true },
  });
  const download = await aio.raw("v1/file/download?path=/workspace/up/up.bin&change_policy=abort");
  expect(download.status).toBe(200);
  expect(download.headers.get("x-content-type-options")).toBe("nosniff");
  expect(Buffer.from(await download.arrayBuffer()).equals(bytes)).toBe(true);
  for (const [path, status] of [
    ["view.txt", 403],
    ["src", 400],
    ["/etc/passwd", 400],
    ["nothing", 404],
  ] as const) {
    expect((await aio.raw(`v1/file/download?path=${path}`)).status).toBe(status);
  }
  expect((await aio.raw("v1/file/upload", { method: "POST", body: "x" })).status).toBe(422);
});

test("changes are watched, by asking and by events, and what is hidden is not told", async () => {
  const started = (await (
    await aio.raw("v1/file/watch", { method: "POST", body: '{"path":"/workspace"}' })
  ).json()) as {
    watcher_id: string;
  };
  const id = started.watcher_id;
  await sandbox.run("echo 1 > watched.txt; mkdir -p node_modules && echo 1 > node_modules/x; echo 2 > secret-not.txt");
  const seen = new Map<string, string>();
  let cursor = 0;
  await eventually(async () => {
    const body = JSON.stringify({ cursor, timeout: 5 });
    const response = await aio.raw(`v1/file/watch/${id}/poll`, { method: "POST", body });
    const news = (await response.json()) as { cursor: number; events: { relative_path: string; type: string }[] };
    cursor = news.cursor;
    for (const { relative_path, type } of news.events) if (!seen.has(relative_path)) seen.set(relative_path, type);
    expect([...seen.keys()]).toEqual(expect.arrayContaining(["watched.txt", "secret-not.txt"]));
  });
  expect(seen.get("watched.txt")).toBe("create");
  expect([...seen.keys()].filter((name) => name.startsWith("node_modules"))).toEqual([]);
  const stream = await aio.raw(`v1/file/watch/${id}/events`);
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("watched.txt")) text += (await reader.read()).value;
  await reader.cancel();
  expect(text).toMatch(/^event: watch_started\n/);
  expect(text).toContain(`id: ${id}:1\nevent: file_change\n`);
  const wait = aio.raw("v1/file/watch/wait", { method: "POST", body: '{"path":"/workspace/src","timeout":20}' });
  let written = Promise.resolve();
  const writing = setInterval(() => {
    written = written.then(() => sandbox.files.writeFile("src/new.txt", "x"));
  }, 100);
  expect(await (await wait).json()).toMatchObject({ triggered: true, event: { relative_path: "new.txt" } });
  clearInterval(writing);
  await written;
  expect((await aio.raw(`v1/file/watch/${id}`, { method: "DELETE" })).status).toBe(200);
  expect((await aio.raw(`v1/file/watch/${id}/poll`, { method: "POST", body: "{}" })).status).toBe(404);
});
