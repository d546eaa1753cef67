import { describe, expect, test } from "vitest";
import { paintDiff } from "../../src/changes/colours.ts";
import { columnsOf, tableLines } from "../../src/table.ts";
import { paintFor } from "../../src/terminal.ts";

const plain = paintFor({ isTTY: false }, {});
const coloured = paintFor({ isTTY: true }, {});

test.each([
  ["plain", 5],
  ["Grüße", 5],
  ["日本語", 6],
  ["한국", 4],
  ["ｆｕｌｌ", 8],
  ["🙂.md", 5],
  ["👩‍👩‍👧", 2],
  ["🇩🇪", 2],
  ["e\u0301", 1],
  ["✓ ✔️", 4],
])("%s takes %d columns", (text, columns) => {
  expect(columnsOf(text)).toBe(columns);
});

describe("a table", () => {
  const table = {
    headings: ["NAME", "SIZE", "STATUS"],
    rows: [
      ["日本", "5", "running"],
      ["a-long-name", "1000", ""],
      ["\u001b[31m", "1", "error"],
    ],
    right: ["SIZE"],
  };

  test("has straight columns, whatever is in them, and no blanks at the end", () => {
    expect(tableLines(table, plain)).toEqual([
      "NAME         SIZE  STATUS",
      "日本            5  running",
      "a-long-name  1000",
      "\\x1b[31m        1  error",
    ]);
  });

  test("has colours for what they help with, on a terminal", () => {
    expect(tableLines(table, coloured)).toEqual([
      "\u001b[1mNAME\u001b[0m         \u001b[1mSIZE\u001b[0m  \u001b[1mSTATUS\u001b[0m",
      "日本            5  \u001b[32mrunning\u001b[0m",
      "a-long-name  1000",
      "\\x1b[31m        1  \u001b[31merror\u001b[0m",
    ]);
  });

  test("without rows is its headings", () => {
    expect(tableLines({ ...table, rows: [] }, plain)).toEqual(["NAME  SIZE  STATUS"]);
  });
});

describe("a diff", () => {
  const text = "diff --git a/x b/x\n@@ -1 +1 @@\n-old\u001b[2J\n+new\n same\tline\n";

  test("is coloured by its lines, and what is in them moves no cursor", () => {
    expect(paintDiff(text, coloured)).toBe(
      "\u001b[1mdiff --git a/x b/x\u001b[0m\n\u001b[36m@@ -1 +1 @@\u001b[0m\n" +
        "\u001b[31m-old\\x1b[2J\u001b[0m\n\u001b[32m+new\u001b[0m\n same\tline\n",
    );
  });

  test("is the same text without colours", () => {
    expect(paintDiff(text, plain)).toBe(text.replace("\u001b", "\\x1b"));
  });
});
