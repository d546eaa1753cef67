import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { KilledServer } from "../../support/killed-server.ts";
import { Project, type State } from "../../support/project.ts";
import { rounds } from "../../support/rounds.ts";

// Files that are changed, added and deleted, directories that become files: a sync with every kind of step.
function wanted(round: number): State {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, `${round}\n`]));
  const even = { "turns/deep": "/", "turns/deep/x": `${round}\n`, turns: "/" };
  return { ...files, ...(round % 2 === 0 ? even : { turns: `${round}\n` }), [`only${round}`]: "here\n" };
}

function command(round: number): string {
  const turns =
    round % 2 === 0
      ? `rm turns; mkdir -p turns/deep; echo ${round} >turns/deep/x`
      : `rm -r turns; echo ${round} >turns`;
  return `for i in $(seq 0 19); do echo ${round} >f$i; done; rm only*; echo here >only${round}; ${turns}`;
}

test("L-24 a sync that a kill interrupts happened as a whole or not at all, and can be asked for again", async () => {
  await using killed = await KilledServer.start();
  let project = await Project.make(killed.server, killed.grpc, { only0: "here\n", "turns/deep/x": "0\n" });
  const id = await project.sandbox({}, { sync: "SYNC_MODE_MANUAL" });
  let before = await project.state();
  for (let round = 1; round <= rounds(3); round++) {
    const { newest, base } = { newest: await project.newest(), base: project };
    expect((await project.run(id, command(round))).stderr).toBe("");
    const { isAcknowledged } = await killed.killDuring(join(project.tree, "../staging"), () => base.apply(id));
    project = project.on(killed.grpc);
    const state = await project.state();
    const happened = (await project.newest()) > newest;
    expect(state).toEqual(happened ? wanted(round) : before);
    if (isAcknowledged) expect(happened).toBe(true);
    await project.apply(id);
    expect(await project.state()).toEqual(wanted(round));
    expect(await project.newest()).toBe(newest + 1);
    expect(await project.changes(id)).toEqual([]);
    expect(readdirSync(join(project.tree, "../staging"))).toEqual([]);
    // A delta that the kill kept from being emptied is no old delta: newer work stays.
    await project.write({ f0: "newer\n" });
    await project.apply(id);
    expect((await project.run(id, "cat f0")).stdout).toBe("newer\n");
    expect(await project.state()).toEqual({ ...wanted(round), f0: "newer\n" });
    before = await project.state();
  }
});
