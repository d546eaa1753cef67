import { expect, test } from "vitest";
import { InvalidConfigurationError, Sandbox } from "../../src/index.ts";
import { MockEngine } from "../../src/testing/index.ts";

// In JavaScript, and of options that come from a file, no compiler says that a name is wrong.

const DIRECTORY = import.meta.dirname;

/** What a call without a compiler is told. */
async function told(call: () => Promise<unknown>): Promise<string> {
  const error = await call().then(
    () => "nothing",
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(InvalidConfigurationError);
  const { message, hint } = error as InvalidConfigurationError;
  return `${message}; ${hint}`;
}

test("an option that means nothing is refused wherever a sandbox is opened, before anything is made", async () => {
  await using engine = new MockEngine();
  const options: object = { engine, presett: "read-only" };
  const meant = (what: string) => `the options of ${what} have no member "presett"; did you mean preset?`;
  expect(await told(() => Sandbox.fromLocal(DIRECTORY, options))).toBe(meant("fromLocal"));
  expect(await told(() => Sandbox.create(options))).toBe(meant("create"));
  expect(await told(() => Sandbox.fromCodebase("cb_0123456789abcdef", options))).toBe(meant("fromCodebase"));
  expect(await told(() => Sandbox.getOrCreate("key", options))).toBe(meant("getOrCreate"));
  expect(await Sandbox.list({ engine }).toArray()).toEqual([]);
});

test("a limit, a host's method or a line of a list that means nothing is refused, and not left out", async () => {
  await using engine = new MockEngine();
  const opened = (options: object) => told(() => Sandbox.create({ engine, ...options }));
  expect(await opened({ resources: { memory: "1g" } })).toMatch(
    /^resources have no member "memory"; there are: memoryB/,
  );
  expect(await opened({ network: { alow: [] } })).toBe(
    'the hosts of a network have no member "alow"; did you mean allow?',
  );
  expect(await opened({ network: { allow: [{ host: "a.test", method: ["GET"] }] } })).toBe(
    `lines of a network's list have no member "method"; did you mean methods?`,
  );
});

test("an option of a command that means nothing is refused, and so is what is no command", async () => {
  await using engine = new MockEngine();
  await using sandbox = await Sandbox.create({ engine });
  const options: object = { timeout: 5 };
  const text = 'the options of a command have no member "timeout"; ';
  expect(await told(() => sandbox.run("true", options))).toContain(text);
  expect(await told(() => sandbox.run("true", { ...options, onStdout: () => {} }))).toContain(text);
  expect(await told(async () => (await sandbox.exec("true", options)).wait())).toContain(text);
  expect(await told(() => sandbox.spawn("true", options))).toContain("the options of a process have no member");
  for (const command of [undefined, null, 5, { 0: "true" }]) {
    expect(await told(() => sandbox.run(command as unknown as string))).toMatch(/^a command is a line for the shell/);
  }
  // What is not said is no member.
  const absent: object = { timeout: undefined };
  await sandbox.run("true", absent);
});

test("a sandbox that was closed or disposed of can be disposed of once more", async () => {
  await using engine = new MockEngine();
  await using sandbox = await Sandbox.create({ engine });
  await sandbox[Symbol.asyncDispose]();
  await using left = await Sandbox.create({ engine });
  await left.close();
  expect((await Sandbox.list({ engine }).toArray()).map(({ id }) => id)).toEqual([left.id]);
});
