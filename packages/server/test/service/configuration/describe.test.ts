import { expect, test } from "vitest";
import { CONFIGURATION_KEYS } from "../../../src/service/configuration/keys.ts";
import { describeConfiguration } from "../../../src/service/configuration/load.ts";
import { load } from "./configuration.ts";

test("every setting is described, and no two share a variable", async () => {
  const described = describeConfiguration(await load({}));
  expect(described.map(({ name }) => name)).toEqual([...CONFIGURATION_KEYS.keys()]);
  expect(described.filter(({ description }) => description === "")).toEqual([]);
  expect(new Set(described.map(({ variable }) => variable)).size).toBe(described.length);
});

test("what is described can be given again and means the same", async () => {
  const first = await load({
    env: {
      AGENTFENSE_RUNTIME_MAX_TIMEOUT: "1h30m",
      AGENTFENSE_LIMITS_MAX_BODY_SIZE: "2000",
      AGENTFENSE_E2B_TEMPLATES: '{"mine":{"preset":"agent-safe","resources":{"memory_bytes":1048576}}}',
    },
  });
  const env = Object.fromEntries(
    describeConfiguration(first).map(({ variable, value }) => [
      variable,
      Array.isArray(value) ? value.join(",") : typeof value === "object" ? JSON.stringify(value) : String(value),
    ]),
  );
  expect((await load({ env })).config).toEqual(first.config);
});

test("defaults are shown as a file would have them", async () => {
  const described = new Map(describeConfiguration(await load({})).map((setting) => [setting.name, setting]));
  expect(described.get("runtime.default_timeout")).toEqual({
    name: "runtime.default_timeout",
    value: "30s",
    origin: "default",
    description: "of a command that names none; 0 is no limit",
    variable: "AGENTFENSE_RUNTIME_DEFAULT_TIMEOUT",
    default: "30s",
  });
  expect(described.get("limits.max_message_size")?.value).toBe("4MiB");
});
