import { describe, expect, test } from "vitest";
import { withoutHanging } from "../../../../test/support/eventually.ts";
import { OutputText } from "../../src/aio/commands/output-text.ts";
import { SessionTable } from "../../src/aio/commands/session-table.ts";
import { Edits } from "../../src/aio/files/editor.ts";
import { globPattern, namePattern } from "../../src/aio/files/glob-pattern.ts";
import { Budget } from "../../src/budget.ts";

describe("patterns", () => {
  test.each([
    ["*.ts", "a.ts", true],
    ["*.ts", "src/a.ts", false],
    ["**/*.ts", "a.ts", true],
    ["**/*.ts", "src/deep/a.ts", true],
    ["src/**", "src/a/b", true],
    ["src/**", "lib/a", false],
    ["src/**/b", "src/b", true],
    ["**", "any/thing", true],
    ["a?c", "abc", true],
    ["a?c", "ac", false],
    ["[a-c]x", "bx", true],
    ["[!a-c]x", "bx", false],
    ["[!a-c]x", "dx", true],
    ["[]x]", "]", true],
    ["a[", "a[", true],
    ["*", "", true],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-b-b-d", false],
    ["./src/*.ts", "src/a.ts", true],
  ])("%s means %s: %s", (pattern, path, expected) => {
    expect(globPattern(pattern)(path)).toBe(expected);
  });

  test("those that are made to take long do not", async () => {
    const isMeant = namePattern(`${"*a".repeat(128)}b`);
    await withoutHanging(() => {
      for (let n = 0; n < 100; n++) expect(isMeant("a".repeat(255))).toBe(false);
    });
  });
});

describe("output", () => {
  test("keeps what is newest, and counts from the beginning", () => {
    const output = new OutputText(100, new Budget(1_000_000));
    for (let n = 0; n < 100; n++) output.append("0123456789");
    expect(output.end).toBe(1000);
    expect(output.length).toBeLessThanOrEqual(125);
    expect(output.since(990)).toBe("0123456789");
    expect(output.since(0)).toBe(output.since(1000 - output.length));
    expect(output.since(1000)).toBe("");
  });

  test("is short where all together are too much, and what is given up makes room", () => {
    const budget = new Budget(500_000);
    const [first, second] = [new OutputText(1_000_000, budget), new OutputText(1_000_000, budget)];
    first.append("x".repeat(490_000));
    second.append("y".repeat(200_000));
    expect([first.length, second.length]).toEqual([490_000, 64 * 1024]);
    first.release();
    expect(budget.isSpent).toBe(false);
    second.append("z".repeat(300_000));
    expect(second.length).toBe(64 * 1024 + 300_000);
  });
});

class Entry {
  lastUsedAt: Date;
  readonly isBusy: boolean;
  isClosed = false;

  constructor(time: number, isBusy = false) {
    this.lastUsedAt = new Date(time);
    this.isBusy = isBusy;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

describe("sessions", () => {
  test("two that are opened at once are not one too many", async () => {
    const table = new SessionTable<Entry>("session", 2);
    const opening = Promise.withResolvers<Entry>();
    const opened = ["a", "b"].map((id) => table.open(id, () => opening.promise));
    await expect(table.open("c", async () => new Entry(0))).rejects.toMatchObject({ status: 429 });
    await expect(table.open("a", async () => new Entry(0))).rejects.toMatchObject({ status: 409 });
    opening.resolve(new Entry(0));
    await Promise.all(opened);
    expect(table.all.map(([id]) => id)).toEqual(["a", "b"]);
  });

  test("one that is still being opened when all are closed is closed too", async () => {
    const table = new SessionTable<Entry>("session", 2);
    const opening = Promise.withResolvers<Entry>();
    const opened = table.open("a", () => opening.promise);
    await table.clear();
    const entry = new Entry(0);
    opening.resolve(entry);
    await expect(opened).rejects.toMatchObject({ status: 409 });
    expect([entry.isClosed, table.all]).toEqual([true, []]);
  });

  test("names that could be taken for something else are none", async () => {
    const table = new SessionTable<Entry>("session", 2);
    for (const id of ["__proto__", "", "a b", "a/b", "x".repeat(200), "a\n"]) {
      await expect(table.open(id, async () => new Entry(0))).rejects.toMatchObject({ status: 400 });
    }
  });
});

test("edits are taken back in turn, and old ones are forgotten", () => {
  const edits = new Edits();
  edits.put("a", "1");
  edits.put("b", undefined);
  edits.put("a", "2");
  expect(edits.take("a")).toEqual({ path: "a", text: "2" });
  expect(edits.take("a")).toEqual({ path: "a", text: "1" });
  expect(edits.take("a")).toBeUndefined();
  edits.put("large", "x".repeat(1_000_000));
  edits.put("c", "x".repeat(500_000));
  expect(edits.take("large")).toBeUndefined();
  expect(edits.take("c")?.text).toHaveLength(500_000);
});
