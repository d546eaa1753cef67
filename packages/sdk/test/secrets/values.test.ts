import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { afterAll, expect, test } from "vitest";
import { InvalidConfigurationError } from "../../src/errors.ts";
import type { SandboxOptions } from "../../src/model/options.ts";
import { readSecretValue, secretFields } from "../../src/secrets/values.ts";

const VALUE = "a value of a secret";
const directory = mkdtempSync(join(tmpdir(), "agentfense-values-"));
const file = join(directory, "value");
writeFileSync(file, `${VALUE}\r\n`);
afterAll(() => rmSync(directory, { recursive: true }));

test("a value is what was said, a variable, a file without its last line end, or what a command prints", async () => {
  const env = { MINE: VALUE, PATH: process.env.PATH };
  for (const source of [{ value: VALUE }, { fromEnv: "MINE" }, { file }, { command: "printenv MINE" }]) {
    expect(await readSecretValue("KEY", source as { value: string }, env)).toBe(VALUE);
  }
});

test("a request has values and places, and of what the server keeps the name alone", async () => {
  expect(await secretFields(undefined)).toEqual([]);
  expect(await secretFields(["A", "B"])).toEqual([{ name: "A" }, { name: "B" }]);
  expect(await secretFields({ A: "kept", B: { file, hosts: ["b.test"], in: "query key" } })).toEqual([
    { name: "A" },
    { name: "B", value: VALUE, hosts: ["b.test"], place: "query key" },
  ]);
});

test("what is none is refused with the reason, and nothing of a value is in it", async () => {
  const right = { value: VALUE, hosts: ["a.test"], in: "bearer" } as const;
  const command = `printf %s '${VALUE}'; exit 3`;
  for (const [wrong, message] of [
    [VALUE, 'the secret KEY is an object with a value and hosts, or "kept"'],
    [
      { ...right, host: "a.test" },
      "the secret KEY has host, which means nothing: value, fromEnv, file, command, hosts, in do",
    ],
    [{ ...right, file }, "the secret KEY has one of value, fromEnv, file and command, as a text"],
    [{ hosts: ["a.test"], in: "bearer" }, "the secret KEY has one of value, fromEnv, file and command, as a text"],
    [{ ...right, value: 12345678 }, "the secret KEY has one of value, fromEnv, file and command, as a text"],
    [{ ...right, hosts: "a.test" }, "the secret KEY needs hosts that it may be sent to: a list of names"],
    [{ ...right, in: undefined }, 'the secret KEY needs in: "header NAME", "bearer", "basic", "query KEY" or "body"'],
    [
      { ...right, value: undefined, fromEnv: "AGENTFENSE_TEST_NOT_SET" },
      "the secret KEY has no value: the variable AGENTFENSE_TEST_NOT_SET is not set here",
    ],
    [{ ...right, value: undefined, file: directory }, `the secret KEY cannot be read from ${directory}: EISDIR`],
    [{ ...right, value: undefined, command }, "the command that prints the secret KEY failed"],
  ] as const) {
    const error = await secretFields({ KEY: wrong } as SandboxOptions["secrets"]).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(InvalidConfigurationError);
    expect(error).toMatchObject({ message });
    expect(inspect(error)).not.toContain(VALUE);
  }
});
