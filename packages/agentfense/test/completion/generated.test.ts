import { expect, test } from "vitest";
import { COMMANDS, FAMILIES } from "../../src/commands.ts";
import { shapeOf } from "../../src/completion/shape.ts";

// The completion scripts are made without loading a single command, from a table that this test keeps true. After a
// change of a command's help: npx vitest run packages/agentfense/test/completion/generated.test.ts --update
test("the table of commands for completion says what their helps say", async () => {
  const shapes = await Promise.all(
    Object.entries(COMMANDS).map(async ([name, { summary, load }]) => shapeOf(name, summary, (await load()).help)),
  );
  const text = [
    "// Made from the help of every command by packages/agentfense/test/completion/generated.test.ts; vitest -u renews it.",
    'import type { CommandShape } from "../shape.ts";',
    "",
    `export const FAMILIES: Readonly<Record<string, string>> = ${JSON.stringify(FAMILIES, undefined, 2)};`,
    "",
    `export const SHAPES: readonly CommandShape[] = ${JSON.stringify(shapes, undefined, 1)};`,
    "",
  ].join("\n");
  await expect(text).toMatchFileSnapshot("../../src/completion/generated/commands.ts");
});
