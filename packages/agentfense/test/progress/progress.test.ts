import { describe, expect, test } from "vitest";
import { Progress, PullProgress, progressLine } from "../../src/progress/progress.ts";

/** A screen that remembers, and a clock that is moved by hand. */
function screen({ isTTY = true, columns = 80 } = {}) {
  const written: string[] = [];
  const time = { now: 0 };
  return {
    written,
    time,
    clock: () => time.now,
    stream: { isTTY, columns, write: (text: string) => written.push(text) },
  };
}

test("a line of progress has a bar, a percentage and the amounts", () => {
  expect(progressLine("uploading", 512, 2048)).toBe("uploading ██████░░░░░░░░░░░░░░░░░░  25 %  512 B of 2.0 KiB");
  expect(progressLine("applying", 3, 4, "changes")).toBe("applying  ██████████████████░░░░░░  75 %  3 of 4 changes");
  expect(progressLine("reading", 0, 0)).toContain("100 %");
});

describe("progress", () => {
  test("begins when work takes long, is drawn over itself, not too often, and erased at the end", () => {
    const { written, time, clock, stream } = screen();
    {
      using progress = new Progress(stream, "applying", clock);
      for (const [moment, done] of [
        [0, 1],
        [299, 2],
        [300, 3],
        [399, 4],
        [400, 5],
      ] as const) {
        time.now = moment;
        progress.count(done, undefined, "changes");
      }
    }
    expect(written).toEqual(["\rapplying 3 changes\u001b[K", "\rapplying 5 changes\u001b[K", "\r\u001b[K"]);
  });

  test("never fills a line, which would then wrap and could not be erased", () => {
    const { written, time, stream, clock } = screen({ columns: 20 });
    using progress = new Progress(stream, "uploading", clock);
    time.now = 1000;
    progress.show(1, 2);
    expect(written).toEqual(["\ruploading █████████\u001b[K"]);
  });

  test("is nothing where nobody watches", () => {
    const { written, time, stream, clock } = screen({ isTTY: false });
    {
      using progress = new Progress(stream, "reading", clock);
      time.now = 1000;
      progress.show(1, 2);
    }
    expect(written).toEqual([]);
  });

  test("that never began erases nothing", () => {
    const { written, stream } = screen();
    new Progress(stream, "reading")[Symbol.dispose]();
    expect(written).toEqual([]);
  });
});

describe("pulling an image", () => {
  const lines = [
    "pulling debian:12",
    "12: Pulling from library/debian",
    "0123456789ab: Pulling fs layer",
    "ba9876543210: Already exists",
    "0123456789ab: Pull complete",
    "Status: Downloaded newer image",
  ];

  test("says a few sentences where nobody watches", () => {
    const said: string[] = [];
    const { written, stream } = screen({ isTTY: false });
    using pull = new PullProgress(stream, (sentence) => said.push(sentence));
    for (const line of lines) pull.take(line);
    expect(said).toEqual(["pulling debian:12", "12: Pulling from library/debian", "Status: Downloaded newer image"]);
    expect(written).toEqual([]);
  });

  test("counts layers on a terminal, and clears the line before a sentence", () => {
    const { written, time, stream, clock } = screen();
    using pull = new PullProgress(stream, (sentence) => written.push(`${sentence}\n`), clock);
    time.now = 1000;
    for (const line of [lines[0]!, lines[2]!, lines[5]!]) pull.take(line);
    expect(written).toEqual([
      "pulling debian:12\n",
      `\r${progressLine("pulling", 0, 1, "layers")}\u001b[K`,
      "\r\u001b[K",
      "Status: Downloaded newer image\n",
    ]);
  });
});
