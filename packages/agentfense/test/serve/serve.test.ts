import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test } from "vitest";
import { agentfense, scratch, start } from "../run-cli.ts";

/** Options for a server that runs nothing and keeps everything in a directory of the test. */
async function options(): Promise<string[]> {
  const directory = await scratch();
  const places = ["codebase-path", "mount-path", "db-path"].flatMap((name) => [`--${name}`, join(directory, name)]);
  return ["--runtime", "mock", "--http-addr", "127.0.0.1:0", ...places];
}

async function startServer(more: readonly string[] = []) {
  const child = start(["serve", "--grpc-addr", "127.0.0.1:0", ...(await options()), ...more], {});
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const stderr = text(child.stderr!);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const { value, done } = await lines.next();
  if (done) throw new Error(`serve ended before it listened: ${await stderr}`);
  return { child, line: value as string, exited, stderr };
}

describe("serve", () => {
  test.each([["SIGTERM"], ["SIGINT"]] as const)(
    "prints its addresses, answers, and ends with 0 on %s",
    async (signal) => {
      const server = await startServer(["--log-format", "json"]);
      const [, grpc, http] =
        /^agentfense: gRPC on (127\.0\.0\.1:\d+), REST on (127\.0\.0\.1:\d+)$/.exec(server.line) ?? [];
      expect((await fetch(`http://${http}/healthz`)).status).toBe(200);
      const listed = await agentfense(["codebase", "list", "--json", "--endpoint", `http://${grpc}`]);
      expect(listed).toEqual({ code: 0, stdout: "[]\n", stderr: "" });

      server.child.kill(signal);
      expect(await server.exited).toEqual([0, null]);
      const entries = (await server.stderr)
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { msg: string });
      expect(entries.map(({ msg }) => msg)).toContain("shutting down");
    },
  );

  test("a certificate or key that cannot be used is one line with the setting's name", async () => {
    const directory = await scratch();
    const generate = (name: string) =>
      execFileSync(
        "openssl",
        // biome-ignore format: one option a word
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
          "/CN=localhost", "-keyout", `${name}.key`, "-out", `${name}.pem`],
        { cwd: directory, stdio: "ignore" },
      );
    generate("one");
    generate("other");
    await writeFile(join(directory, "text"), "no certificate\n");
    const attempt = async (cert: string, key: string) => {
      const config = join(directory, "server.yaml");
      await writeFile(config, `server: { tls: { cert_file: ${cert}, key_file: ${key} } }\n`);
      return await agentfense(["serve", "--config", config, "--grpc-addr", "127.0.0.1:0", ...(await options())]);
    };
    const failure = (what: string) => ({ code: 1, stdout: "", stderr: expect.stringContaining(what) });
    const start = "agentfense: the server cannot start: server.tls";
    expect(await attempt("missing.pem", "one.key")).toEqual(failure(`${start}.cert_file: ENOENT`));
    expect(await attempt("text", "one.key")).toEqual(failure(`${start}.cert_file: cannot be used for TLS`));
    expect(await attempt("one.pem", "text")).toEqual(failure(`${start}.key_file: cannot be used for TLS`));
    const mismatch = `${start}.cert_file and server.tls.key_file: cannot be used for TLS`;
    expect(await attempt("one.pem", "other.key")).toEqual(failure(mismatch));
  });

  test("an address that is taken is one line and exit code 1", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as { port: number };
    const { code, stdout, stderr } = await agentfense([
      "serve",
      "--grpc-addr",
      `127.0.0.1:${port}`,
      ...(await options()),
    ]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/agentfense: the server cannot start: .*EADDRINUSE/);
  });

  test("beyond this machine it wants keys", async () => {
    const args = ["serve", "--grpc-addr", "0.0.0.0:0", "--set", "auth.keys=off", ...(await options())];
    expect(await agentfense(args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is open to other machines"),
    });
  });
});
