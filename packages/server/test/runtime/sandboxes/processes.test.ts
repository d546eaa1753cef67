import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../test/support/eventually.ts";
import { DescriptorRoom } from "../../../src/isolation/backend/descriptor-room.ts";
import { ALICE, BOB, refusal, SandboxesFixture } from "./fixture.ts";

const CALL = { command: "sleep 600", env: {}, workdir: "", tag: "", stdin: false };
const answer = () => ({ durationMs: Number.POSITIVE_INFINITY });

async function running(place: SandboxesFixture, idlePauseMs = 0): Promise<string> {
  const { id } = await place.sandboxes.create(ALICE, { ...place.request(), idlePauseMs });
  await place.sandboxes.start(ALICE, id);
  return id;
}

describe("processes that outlive their call", () => {
  test.each([{ crash: false }, { crash: true }])(
    "their numbers are not given again after a restart of the server (%o)",
    async (how) => {
      await using place = await SandboxesFixture.open({ answer });
      const id = await running(place);
      const first = (await (await place.sandboxes.processes(ALICE, id)).spawn(CALL)).number;
      await place.reopen(how);
      await place.sandboxes.ready;
      const processes = await place.sandboxes.processes(ALICE, id);
      expect(processes.list()).toEqual([]);
      expect(await refusal(processes.wait(first))).toMatchObject({ code: "PROCESS_NOT_FOUND" });
      expect((await processes.spawn(CALL)).number).toBeGreaterThan(first);
    },
  );

  test("keep no sandbox awake, but whoever waits for one does; what is asked of one wakes it up", async () => {
    await using place = await SandboxesFixture.open({ answer });
    const id = await running(place, 20);
    const processes = await place.sandboxes.processes(ALICE, id);
    const { number } = await processes.spawn(CALL);
    await eventually(async () => expect(await place.sandboxes.get(ALICE, id)).toMatchObject({ status: "PAUSED" }));
    expect(processes.list()).toMatchObject([{ number, outcome: undefined }]);
    await processes.signal(number, "KILL");
    expect(await processes.wait(number)).toMatchObject({ outcome: { exitCode: 137 } });
    await place.sandboxes.pause(ALICE, id);
    expect(await refusal(processes.spawn(CALL))).toMatchObject({ code: "SANDBOX_PAUSED" });
    expect(await refusal(processes.wait(number))).toMatchObject({ code: "SANDBOX_PAUSED" });
  });

  test("are nobody's but the owner's", async () => {
    await using place = await SandboxesFixture.open({ answer });
    const id = await running(place);
    expect(await refusal(place.sandboxes.processes(BOB, id))).toMatchObject({ code: "SANDBOX_NOT_FOUND" });
  });
});

describe("descriptors that sandboxes share", () => {
  test("one sandbox never gets all of them: whoever comes later finds some", () => {
    const room = new DescriptorRoom(800);
    const fill = (): number => {
      let own = 0;
      while (room.takeShare(4, own)) own += 4;
      return own;
    };
    const first = fill();
    expect(first).toBeGreaterThan(600);
    const second = fill();
    expect(second).toBeGreaterThan(0);
    expect(first + second).toBeLessThan(800);
    room.giveBack(first);
    expect(fill()).toBeGreaterThan(500);
  });
});
