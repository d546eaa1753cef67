import { describe, expect, test } from "vitest";
import { abortedSoon } from "../../../../../test/support/eventually.ts";
import type { IsolationError } from "../../../src/isolation/backend/isolation-error.ts";
import { findShell } from "../../../src/isolation/session/dialects.ts";
import { ShellSession } from "../../../src/isolation/session/session.ts";
import { errorCode, openSession, place } from "./fixture.ts";
import { LocalBox } from "./local-shell.ts";

const AVAILABLE = ["/bin/bash", "/usr/bin/zsh", "/bin/sh"];

function refusal(asked: string | undefined, available: readonly string[]): string {
  try {
    return findShell(asked, available).path;
  } catch (error) {
    return (error as IsolationError).code;
  }
}

describe("which shell a session gets", () => {
  test("nothing asked is the first shell of the box", () => {
    expect(findShell(undefined, AVAILABLE).path).toBe("/bin/bash");
  });

  test.each(["zsh", "/bin/zsh", "/usr/bin/zsh"])("%s is the box's zsh", (asked) => {
    expect(findShell(asked, AVAILABLE).path).toBe("/usr/bin/zsh");
  });

  test("the asked path is taken when the box has it", () => {
    expect(findShell("/usr/bin/sh", ["/bin/sh", "/usr/bin/sh"]).path).toBe("/usr/bin/sh");
  });

  test.each(["fish", "/tmp/bash", "bash -x", "../bin/bash", "", "constructor", "/bin/../bin/bash"])(
    "%j is refused",
    (asked) => {
      expect(refusal(asked, AVAILABLE)).toBe("INVALID_ARGUMENT");
    },
  );

  test("a shell the box lacks is not found, and neither is any in a box without shells", () => {
    expect([refusal("dash", AVAILABLE), refusal(undefined, [])]).toEqual(["PROGRAM_NOT_FOUND", "PROGRAM_NOT_FOUND"]);
  });
});

describe("opening", () => {
  const options = {
    id: "session-1",
    request: {},
    env: {},
    workdir: place,
    defaults: { timeLimits: {}, outputBytes: 1_000 },
  };

  test("a program that ends at once is an error with what it said", async () => {
    const box = new LocalBox(["/bin/sh"]);
    const broken = {
      shells: () => box.shells(),
      openShell: () => box.openShell({ argv: ["/bin/sh", "-c", "echo no room >&2; exit 9"], env: {}, workdir: place }),
    };
    await expect(ShellSession.open({ ...options, box: broken })).rejects.toThrow(
      "the shell ended with exit code 9 before it was ready: no room",
    );
  });

  test("an aborted signal ends a shell that is not ready yet", async () => {
    const box = new LocalBox(["/bin/sh"]);
    const silent = {
      shells: () => box.shells(),
      openShell: () => box.openShell({ argv: ["/bin/sleep", "60"], env: {}, workdir: place }),
    };
    const signal = abortedSoon();
    expect(await errorCode(ShellSession.open({ ...options, box: silent }, { signal }))).toBe("CANCELLED");
    expect(await box.opened[0]!.exit).toEqual({ exitCode: 137, outOfMemory: false });
  });

  test.each([0, -1, Number.NaN])("an idle timeout of %d is refused", async (idleTimeoutMs) => {
    expect(await errorCode(openSession({ path: "/bin/sh" }, { request: { idleTimeoutMs } }))).toBe("INVALID_ARGUMENT");
  });
});
